#include "transport/exported_allocations.hpp"

#include <algorithm>

#include "gpu/runtime.hpp"

namespace hier {

ExportedAllocations& ExportedAllocations::instance()
{
    static ExportedAllocations allocations;
    return allocations;
}

void ExportedAllocations::note(const ExportedMemory& memory, int device,
                               std::span<const PieceSocket::Address> peers)
{
    const std::lock_guard lock(mutex_);
    auto at = exports_.upper_bound(memory.base);
    if (at != exports_.begin()) --at;
    while (at != exports_.end() && at->first < memory.base + memory.length) {
        const PieceSocket::Entry& known = at->second.memory;
        const bool is_other =
            known.base != memory.base || known.length != memory.length || known.id != memory.id;
        const bool is_gone = is_other && known.base + known.length > memory.base;
        at = is_gone ? forget(at) : std::next(at);
    }
    Export& known =
        exports_
            .try_emplace(memory.base, Export{{memory.base, memory.length, memory.id}, device, {}})
            .first->second;
    for (const PieceSocket::Address& peer : peers) {
        const bool is_another = peer.process != PieceSocket::instance().address().process;
        if (is_another && PieceSocket::instance().reaches(peer)) known.told[peer.process] = peer;
    }
}

ExportedAllocations::Exports::iterator ExportedAllocations::forget(Exports::iterator at)
{
    if (freed_.size() == most_freed) {
        freed_bytes_ -= freed_.front().memory.length;
        freed_.erase(freed_.begin());
    }
    freed_bytes_ += at->second.memory.length;
    freed_.push_back(std::move(at->second));
    return exports_.erase(at);
}

// Some at a time: to ask takes a driver some 100 ns.
void ExportedAllocations::look_after()
{
    const std::lock_guard lock(mutex_);
    const std::size_t some = std::min(exports_.size(), 4 + exports_.size() / 16);
    for (std::size_t i = 0; i < some && !exports_.empty(); i++) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        looked_at_ = at->first;
        const auto& [memory, device, told] = at->second;
        auto* const base = reinterpret_cast<std::byte*>(memory.base);
        if (!gpu::runtime()->is_there({base, memory.length, memory.id}, device)) (void)forget(at);
    }
    if (freed_bytes_ >= worth_telling) tell_of_freed();
    notices_.send();
}

void ExportedAllocations::tell_of_freed()
{
    for (const Export& freed : freed_) {
        for (const auto& [process, peer] : freed.told) notices_.add(peer, freed.memory);
    }
    freed_.clear();
    freed_bytes_ = 0;
}

}  // namespace hier
