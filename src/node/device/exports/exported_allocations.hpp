// SPDX-License-Identifier: BSD-3-Clause
// Allocations of this process that peers map as a whole (peer_mappings.hpp). A driver gives freed
// memory back only when no process has it mapped, and only the owner knows that the memory was
// freed. Then its entry vanishes from the export table.
#pragma once

#include <map>
#include <mutex>

#include "node/device/exports/export_table.hpp"

namespace hier {

class ExportedAllocations {
public:
    static ExportedAllocations& instance();

    // Call this before the peers are told where `memory` is. If the memory is new, entries of freed
    // memory vanish first. Peers may have to unmap that in order to map the new memory.
    void note(const ExportEntry& memory, int device);
    std::size_t size();

private:
    // Takes entries of freed memory out of the map.
    std::vector<ExportEntry> take_freed();

    // Looks in one call. A driver takes up to a microsecond for each.
    static constexpr std::size_t max_looks = 256;
    struct Export {
        ExportEntry memory;
        int device;
    };

    std::mutex mutex_;
    std::map<std::uint64_t, Export> exports_;  // by base
    std::uint64_t looked_at_ = 0;
};

}  // namespace hier
