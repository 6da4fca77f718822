// SPDX-License-Identifier: BSD-3-Clause
// News of memory that is gone, for processes that have not heard them yet.
#pragma once

#include <map>
#include <vector>

#include "node/device/node_socket.hpp"

namespace hier {

class MemoryNotices {
public:
    explicit MemoryNotices(NodeSocket::What what) : what_(what) {}

    void add(const NodeSocket::Address& peer, const NodeSocket::Entry& memory);
    // A process whose socket is full gets its news the next time. A process that is gone is
    // dropped.
    void send();
    // Are there news for this process?
    bool has(std::uint64_t process) const { return due_.contains(process); }

private:
    struct Due {
        NodeSocket::Address peer;
        std::vector<NodeSocket::Entry> memory;
    };

    NodeSocket::What what_;
    std::map<std::uint64_t, Due> due_;
};

}  // namespace hier
