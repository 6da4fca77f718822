#include "transport/piece_exports.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "transport/piece_digest.hpp"

namespace hier {
namespace {

PieceSocket::Entry entry_of(const gpu::Piece& piece)
{
    return {reinterpret_cast<std::uint64_t>(piece.base), piece.length, piece.id};
}

}  // namespace

PieceExports& PieceExports::instance()
{
    static PieceExports exports;
    return exports;
}

bool PieceExports::share(const Region& region, std::span<const PieceSocket::Address> peers,
                         std::uint64_t& digest)
{
    const int device = region.memory.device;
    const std::lock_guard lock(mutex_);
    if (!gpu::runtime()->find_pieces(region.base, region.length, device, pieces_)) return false;
    PieceDigest all;
    bool is_told = true;
    for (const gpu::Piece& piece : pieces_) {
        is_told = !find(piece, device).is_refused && is_told;
        all.add(reinterpret_cast<std::uint64_t>(piece.base), piece.length, piece.id);
    }
    tell_retired();
    digest = all.value();
    const std::span pieces(pieces_);
    for (std::size_t i = 0; i < pieces.size() && is_told; i += PieceSocket::most)
        is_told = tell(pieces.subspan(i, std::min(PieceSocket::most, pieces.size() - i)), peers);
    return is_told;
}

PieceExports::Export& PieceExports::find(const gpu::Piece& piece, int device)
{
    auto at = exports_.upper_bound(piece.base);
    if (at != exports_.begin()) --at;
    while (at != exports_.end() && at->first < piece.base + piece.length) {
        const gpu::Piece& known = at->second.piece;
        if (known.base == piece.base && known.length == piece.length && known.id == piece.id)
            return at->second;
        const auto next = std::next(at);
        if (known.base + known.length > piece.base) retire(at);
        at = next;
    }
    return exports_.insert_or_assign(piece.base, Export{piece, device, false, {}}).first->second;
}

bool PieceExports::tell(std::span<const gpu::Piece> pieces,
                        std::span<const PieceSocket::Address> peers)
{
    std::vector<int> descriptors(pieces.size(), -1);  // those that are needed
    bool is_told = true;
    for (const PieceSocket::Address& peer : peers) {
        if (peer.process != PieceSocket::instance().address().process)
            is_told = tell(pieces, peer, descriptors) && is_told;
    }
    for (const int descriptor : descriptors) {
        if (descriptor >= 0) close(descriptor);
    }
    return is_told;
}

bool PieceExports::tell(std::span<const gpu::Piece> pieces, const PieceSocket::Address& peer,
                        std::vector<int>& descriptors)
{
    std::vector<PieceSocket::Entry> entries;
    std::vector<int> sent;
    for (std::size_t i = 0; i < pieces.size(); i++) {
        Export& known = exports_.at(pieces[i].base);
        if (known.told.contains(peer.process)) continue;
        if (descriptors[i] < 0) descriptors[i] = gpu::runtime()->export_piece(pieces[i]);
        known.is_refused = descriptors[i] < 0;
        if (known.is_refused) return false;
        entries.push_back(entry_of(pieces[i]));
        sent.push_back(descriptors[i]);
    }
    if (entries.empty()) return true;
    if (losses_[peer.process] >= most_losses ||
        !PieceSocket::instance().send(peer, PieceSocket::What::mapped, entries, sent))
        return false;
    for (const gpu::Piece& piece : pieces) exports_.at(piece.base).told[peer.process] = peer;
    return true;
}

void PieceExports::retire(Exports::iterator at)
{
    for (const auto& [process, peer] : at->second.told) {
        Retired& retired = retired_[process];
        retired.peer = peer;
        if (retired.pieces.size() < PieceSocket::most)
            retired.pieces.push_back(entry_of(at->second.piece));
    }
    exports_.erase(at);
}

// Before others come to their addresses. Who does not hear it drops them when he is told of those.
void PieceExports::tell_retired()
{
    for (const auto& [process, retired] : retired_)
        (void)PieceSocket::instance().send(retired.peer, PieceSocket::What::unmapped,
                                           retired.pieces, {});
    retired_.clear();
}

// Some at a time: to ask takes a driver some 100 ns.
void PieceExports::look_after()
{
    const std::lock_guard lock(mutex_);
    std::vector<gpu::Piece> now;
    for (std::size_t some = 4 + exports_.size() / 16; some > 0 && !exports_.empty(); some--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        const Export& known = at->second;
        looked_at_ = known.piece.base;
        const bool is_there = gpu::runtime()->find_pieces(known.piece.base, 1, known.device, now) &&
                              now[0].base == known.piece.base && now[0].id == known.piece.id;
        if (!is_there) retire(at);
    }
    tell_retired();
}

void PieceExports::forget(std::uint64_t process)
{
    const std::lock_guard lock(mutex_);
    losses_[process]++;
    for (auto& [base, known] : exports_) known.told.erase(process);
}

}  // namespace hier
