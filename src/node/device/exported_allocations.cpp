// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exported_allocations.hpp"

#include <algorithm>

#include "gpu/runtime.hpp"

namespace hier {

ExportedAllocations& ExportedAllocations::instance()
{
    static ExportedAllocations allocations;
    return allocations;
}

void ExportedAllocations::note(const ExportedMemory& memory, int device,
                               std::span<const NodeSocket::Address> peers)
{
    const std::lock_guard lock(mutex_);
    const NodeSocket::Entry entry{memory.base, memory.length, memory.id};
    const auto known = exports_.find(memory.base);
    if (known == exports_.end() || known->second.memory.id != memory.id) {
        look_for_freed();
        exports_.insert_or_assign(memory.base, Export{entry, device, {}});
    }
    for (const NodeSocket::Address& peer : peers) {
        const bool is_another = peer.process != NodeSocket::instance().address().process;
        if (is_another && NodeSocket::instance().reaches(peer))
            exports_.at(memory.base).told[peer.process] = peer;
    }
}

void ExportedAllocations::look_for_freed()
{
    for (std::size_t i = std::min(exports_.size(), max_looks); i > 0; i--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        looked_at_ = at->first;
        const auto& [memory, device, told] = at->second;
        const auto* const base = reinterpret_cast<const std::byte*>(memory.base);
        if (gpu::runtime()->is_there(base, memory.id, device)) continue;
        for (const auto& [process, peer] : told) notices_.add(peer, memory);
        exports_.erase(at);
    }
    notices_.send();
}

std::size_t ExportedAllocations::size()
{
    const std::lock_guard lock(mutex_);
    return exports_.size();
}

}  // namespace hier
