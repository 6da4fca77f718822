// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/peer_pieces.hpp"

#include <unistd.h>

#include "gpu/runtime.hpp"
#include "memory/piece_digest.hpp"
#include "node/device/peer_mappings.hpp"
#include "node/device/piece_exports.hpp"

namespace hier {
namespace {

// Of the window for what begins with this piece.
std::uint64_t start_of(std::uint64_t base)
{
    constexpr std::uint64_t step = PeerPieces::window_bytes / 2;
    return base / step * step;
}

std::uint64_t length_of(std::uint64_t length) { return length; }
template <class Piece> std::uint64_t length_of(const Piece& piece) { return piece.length; }

// Calls do_piece(base, piece) for those that the entry overlaps, and erases them.
template <class Pieces, class Do>
void erase_overlapping(Pieces& pieces, const PieceSocket::Entry& entry, Do&& do_piece)
{
    auto piece = pieces.upper_bound(entry.base);
    if (piece != pieces.begin()) --piece;
    while (piece != pieces.end() && piece->first < entry.base + entry.length) {
        if (piece->first + length_of(piece->second) <= entry.base) {
            ++piece;
            continue;
        }
        do_piece(piece->first, piece->second);
        piece = pieces.erase(piece);
    }
}

}  // namespace

bool PeerPieces::fit(const PieceSocket::Entry& first, const PieceSocket::Entry& last)
{
    return last.base + last.length - start_of(first.base) <= window_bytes;
}

PeerPieces& PeerPieces::instance()
{
    static PeerPieces pieces;
    return pieces;
}

Status PeerPieces::acquire(const PieceSocket::Address& peer, const Range& range, int device,
                           Window*& window, std::byte*& at)
{
    const std::lock_guard lock(mutex_);
    take_in(device);
    window = map(peer.process, range, device);
    if (window == nullptr) {
        (void)PieceSocket::instance().send(peer, PieceSocket::What::lost, {}, {});
        return Status::transport_error;
    }
    window->users++;
    at = window->base + (range.address - window->start);
    return Status::ok;
}

PeerPieces::Window* PeerPieces::map(std::uint64_t process, const Range& range, int device)
{
    const Pieces& pieces = processes_[process];
    auto first = pieces.upper_bound(range.address);
    if (first != pieces.begin()) --first;
    const auto last = pieces.lower_bound(range.address + range.length);
    PieceDigest digest;
    for (auto piece = first; piece != last; ++piece)
        digest.add(piece->first, piece->second.length, piece->second.id);
    if (first == last || digest.value() != range.digest) return nullptr;

    Window* const window = find_window(process, start_of(first->first), device);
    for (auto piece = first; window != nullptr && piece != last; ++piece) {
        const auto& [base, known] = *piece;
        if (window->mapped.contains(base)) continue;
        if (failed(gpu::runtime()->map_piece(known.handle, device,
                                             window->base + (base - window->start), known.length)))
            return nullptr;
        window->mapped[base] = known.length;
    }
    return window;
}

void PeerPieces::release(Window* window)
{
    const std::lock_guard lock(mutex_);
    window->users--;
}

void PeerPieces::listen(int device)
{
    const std::lock_guard lock(mutex_);
    take_in(device);
}

void PeerPieces::take_in(int device)
{
    PieceSocket::Message message;
    std::vector<int> descriptors;
    while (PieceSocket::instance().receive(message, descriptors)) {
        switch (message.what) {
        case PieceSocket::What::lost:
            PieceExports::instance().forget(message.process);
            break;
        case PieceSocket::What::freed:
            PeerMappings::instance().note_freed(message.owner,
                                                {message.entries.data(), message.count});
            break;
        case PieceSocket::What::mapped:
        case PieceSocket::What::unmapped:
            take_in(message, descriptors, device);
            break;
        }
        for (const int descriptor : descriptors) ::close(descriptor);
    }
}

void PeerPieces::take_in(const PieceSocket::Message& message, std::span<const int> descriptors,
                         int device)
{
    const bool is_mapped = message.what == PieceSocket::What::mapped;
    Pieces& pieces = processes_[message.process];
    for (std::uint32_t i = 0; i < message.count; i++) {
        const PieceSocket::Entry& entry = message.entries[i];
        if (is_mapped && is_known(pieces, entry)) continue;  // and maybe in use
        drop(message.process, entry);
        if (i < descriptors.size() && device >= 0) import(pieces, entry, descriptors[i], device);
    }
}

bool PeerPieces::is_known(const Pieces& pieces, const PieceSocket::Entry& entry)
{
    const auto found = pieces.find(entry.base);
    return found != pieces.end() && found->second.length == entry.length &&
           found->second.id == entry.id;
}

void PeerPieces::import(Pieces& pieces, const PieceSocket::Entry& entry, int descriptor, int device)
{
    Known known{entry.length, entry.id, {}};
    if (!failed(gpu::runtime()->import_piece(descriptor, device, known.handle)))
        pieces[entry.base] = known;
}

// What overlaps: the addresses are another piece's now, or nobody's.
void PeerPieces::drop(std::uint64_t process, const PieceSocket::Entry& entry)
{
    for (Window& w : windows_) {
        if (w.process != process) continue;
        erase_overlapping(w.mapped, entry, [&](std::uint64_t base, std::uint64_t length) {
            if (!gpu::runtime()->unmap_piece(w.base + (base - w.start), length)) w.is_broken = true;
        });
    }
    erase_overlapping(processes_[process], entry, [](std::uint64_t, const Known& known) {
        gpu::runtime()->release_piece(known.handle);
    });
}

PeerPieces::Window* PeerPieces::find_window(std::uint64_t process, std::uint64_t start, int device)
{
    for (Iterator w = windows_.begin(); w != windows_.end(); ++w) {
        if (w->is_broken || w->process != process || w->start != start || w->device != device)
            continue;
        windows_.splice(windows_.begin(), windows_, w);
        return &*w;
    }
    close_oldest();
    std::byte* const base = gpu::runtime()->reserve_addresses(window_bytes);
    if (base == nullptr) return nullptr;
    return &windows_.emplace_front(Window{process, start, device, base, 0, false, {}});
}

PeerPieces::Iterator PeerPieces::close(Iterator window)
{
    for (const auto& [base, length] : window->mapped) {
        if (!gpu::runtime()->unmap_piece(window->base + (base - window->start), length))
            window->is_broken = true;
    }
    if (!window->is_broken) gpu::runtime()->free_addresses(window->base, window_bytes);
    return windows_.erase(window);
}

void PeerPieces::close_oldest()
{
    for (Iterator w = windows_.end(); windows_.size() >= max_windows && w != windows_.begin();) {
        --w;
        if (w->users == 0) w = close(w);
    }
}

void PeerPieces::clear()
{
    const std::lock_guard lock(mutex_);
    take_in(-1);
    for (Iterator w = windows_.begin(); w != windows_.end();)
        w = w->users == 0 ? close(w) : std::next(w);
    for (const auto& [process, pieces] : processes_) {
        for (const auto& [base, known] : pieces) gpu::runtime()->release_piece(known.handle);
    }
    processes_.clear();
}

std::size_t PeerPieces::size()
{
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Window& w : windows_) count += w.mapped.size();
    return count;
}

}  // namespace hier
