// SPDX-License-Identifier: BSD-3-Clause
// Allocations of this process that its peers map as a whole (peer_mappings.hpp), and which peers were
// told of which. Freed memory becomes free only when no process has it mapped, and only its owner
// knows that it was freed.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "node/device/memory_notices.hpp"
#include "node/device/peer_mappings.hpp"

namespace hier {

class ExportedAllocations {
public:
    static ExportedAllocations& instance();

    // Before the peers are told where `memory` is. If it is new, peers that may have mapped freed memory
    // hear of that first. They may have to give it up in order to map this one.
    void note(const ExportedMemory& memory, int device, std::span<const NodeSocket::Address> peers);
    std::size_t size();

private:
    struct Export {
        NodeSocket::Entry memory;
        int device;
        std::map<std::uint64_t, NodeSocket::Address> told;  // by process
    };

    void look_for_freed();

    // At a time: to ask takes a driver up to a microsecond.
    static constexpr std::size_t max_looks = PeerMappings::most;

    std::mutex mutex_;
    std::map<std::uint64_t, Export> exports_;  // by base
    std::uint64_t looked_at_ = 0;
    MemoryNotices notices_{NodeSocket::What::freed};
};

}  // namespace hier
