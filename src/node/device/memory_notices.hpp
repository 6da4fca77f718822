// SPDX-License-Identifier: BSD-3-Clause
// News of memory that is gone, for the processes that have not heard yet.
#pragma once

#include <map>
#include <vector>

#include "node/device/node_socket.hpp"

namespace hier {

class MemoryNotices {
public:
    explicit MemoryNotices(NodeSocket::What what) : what_(what) {}

    void add(const NodeSocket::Address& peer, const NodeSocket::Entry& memory);
    // A process whose queue is full is told the next time. A process that is gone is dropped.
    void send();
    // Is there anything that this process has still to be told?
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
