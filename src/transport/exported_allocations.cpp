#include "transport/exported_allocations.hpp"

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
    const PieceSocket::Entry entry{memory.base, memory.length, memory.id};
    const auto known = exports_.find(memory.base);
    if (known == exports_.end() || known->second.memory.id != memory.id) {
        look_for_freed();
        exports_.insert_or_assign(memory.base, Export{entry, device, {}});
    }
    for (const PieceSocket::Address& peer : peers) {
        const bool is_another = peer.process != PieceSocket::instance().address().process;
        if (is_another && PieceSocket::instance().reaches(peer))
            exports_.at(memory.base).told[peer.process] = peer;
    }
}

void ExportedAllocations::look_for_freed()
{
    std::erase_if(exports_, [&](const auto& item) {
        const Export& known = item.second;
        auto* const base = reinterpret_cast<std::byte*>(known.memory.base);
        if (gpu::runtime()->is_there({base, known.memory.length, known.memory.id}, known.device))
            return false;
        for (const auto& [process, peer] : known.told) notices_.add(peer, known.memory);
        return true;
    });
    notices_.send();
}

std::size_t ExportedAllocations::size()
{
    const std::lock_guard lock(mutex_);
    return exports_.size();
}

}  // namespace hier
