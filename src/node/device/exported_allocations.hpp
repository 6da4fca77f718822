// SPDX-License-Identifier: BSD-3-Clause
// Allocations of this process that peers map as a whole (peer_mappings.hpp), with the peers that
// have been told of each. A driver gives freed memory back only when no process has it mapped, and
// only the owner knows that the memory was freed.
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

    // Call this before the peers are told where `memory` is. If the memory is new, peers that may
    // have mapped freed memory hear of that first. They may have to unmap it in order to map the
    // new memory.
    void note(const ExportedMemory& memory, int device, std::span<const NodeSocket::Address> peers);
    std::size_t size();

private:
    struct Export {
        NodeSocket::Entry memory;
        int device;
        std::map<std::uint64_t, NodeSocket::Address> told;  // by process
    };

    void look_for_freed();

    // Looks in one call. A driver takes up to a microsecond for each.
    static constexpr std::size_t max_looks = PeerMappings::max_mappings;

    std::mutex mutex_;
    std::map<std::uint64_t, Export> exports_;  // by base
    std::uint64_t looked_at_ = 0;
    MemoryNotices notices_{NodeSocket::What::freed};
};

}  // namespace hier
