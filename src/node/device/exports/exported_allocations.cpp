// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/exported_allocations.hpp"

#include <algorithm>

#include "gpu/runtime.hpp"

namespace hier {

ExportedAllocations& ExportedAllocations::instance()
{
    static ExportedAllocations allocations;
    return allocations;
}

void ExportedAllocations::note(const ExportEntry& memory, int device)
{
    const std::lock_guard lock(mutex_);
    const auto known = exports_.find(memory.base);
    if (known != exports_.end() && known->second.memory.is_same(memory)) return;
    std::vector<ExportEntry> freed = take_freed();
    if (const auto old = exports_.extract(memory.base)) freed.push_back(old.mapped().memory);
    if (ExportTable::instance().change({&memory, 1}, freed) != 0) {
        exports_[memory.base] = {memory, device};
    } else {  // no room: peers keep their mappings of it until they have another reason
        (void)ExportTable::instance().change({}, freed);
    }
}

std::vector<ExportEntry> ExportedAllocations::take_freed()
{
    std::vector<ExportEntry> freed;
    for (std::size_t i = std::min(exports_.size(), max_looks); i > 0; i--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        looked_at_ = at->first;
        const auto& [memory, device] = at->second;
        const auto* const base = reinterpret_cast<const std::byte*>(memory.base);
        if (gpu::runtime()->is_there(base, memory.id, device)) continue;
        freed.push_back(memory);
        exports_.erase(at);
    }
    return freed;
}

std::size_t ExportedAllocations::size()
{
    const std::lock_guard lock(mutex_);
    return exports_.size();
}

}  // namespace hier
