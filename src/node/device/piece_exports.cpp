// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/piece_exports.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "memory/piece_digest.hpp"
#include "node/device/peer_pieces.hpp"

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
    shares_++;
    if (PieceSocket::instance().address().process == 0 ||
        !gpu::runtime()->find_pieces(region.base, region.length, device, pieces_) ||
        !PeerPieces::fit(entry_of(pieces_.front()), entry_of(pieces_.back())))
        return false;
    PieceDigest all;
    bool is_told = true;
    for (const gpu::Piece& piece : pieces_) {
        is_told = !find(piece, device).is_refused && is_told;
        all.add(reinterpret_cast<std::uint64_t>(piece.base), piece.length, piece.id);
    }
    retired_.send();
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
    if (!may_be_told(peer)) return false;
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
    if (!PieceSocket::instance().send(peer, PieceSocket::What::mapped, entries, sent)) return false;
    for (const gpu::Piece& piece : pieces) exports_.at(piece.base).told[peer.process] = peer;
    return true;
}

// What it has still to be told is no more lies where the new pieces may be.
bool PieceExports::may_be_told(const PieceSocket::Address& peer)
{
    if (retired_.has(peer.process) || !PieceSocket::instance().reaches(peer)) return false;
    const auto lost = losses_.find(peer.process);
    return lost == losses_.end() || lost->second.count < max_losses ||
           shares_ - lost->second.last > pardoned_after;
}

void PieceExports::retire(Exports::iterator at)
{
    for (const auto& [process, peer] : at->second.told)
        retired_.add(peer, entry_of(at->second.piece));
    exports_.erase(at);
}

// Some at a time: to ask takes a driver some 100 ns.
void PieceExports::look_after()
{
    const std::lock_guard lock(mutex_);
    for (std::size_t some = 4 + exports_.size() / 16; some > 0 && !exports_.empty(); some--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        const Export& known = at->second;
        looked_at_ = known.piece.base;
        if (!gpu::runtime()->is_there(known.piece, known.device)) retire(at);
    }
    retired_.send();
}

void PieceExports::forget(std::uint64_t process)
{
    const std::lock_guard lock(mutex_);
    Losses& losses = losses_[process];
    if (shares_ - losses.last > pardoned_after) losses.count = 0;
    losses.count++;
    losses.last = shares_;
    for (auto& [base, known] : exports_) known.told.erase(process);
}

}  // namespace hier
