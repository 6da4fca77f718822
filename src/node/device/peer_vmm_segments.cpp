// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/peer_vmm_segments.hpp"

#include <unistd.h>

#include "gpu/runtime.hpp"
#include "memory/vmm_digest.hpp"
#include "node/device/peer_mappings.hpp"
#include "node/device/vmm_exports.hpp"

namespace hier {
namespace {

// Where does the window of a range start whose first segment has this base?
std::uint64_t start_of(std::uint64_t base)
{
    constexpr std::uint64_t step = PeerVmmSegments::window_bytes / 2;
    return base / step * step;
}

std::uint64_t length_of(std::uint64_t length) { return length; }
template <class VmmSegment> std::uint64_t length_of(const VmmSegment& segment)
{
    return segment.length;
}

// Calls do_segment(base, segment) for all segments that the entry overlaps, and erases them.
template <class Segments, class Do>
void erase_overlapping(Segments& segments, const NodeSocket::Entry& entry, Do&& do_segment)
{
    auto segment = segments.upper_bound(entry.base);
    if (segment != segments.begin()) --segment;
    while (segment != segments.end() && segment->first < entry.base + entry.length) {
        if (segment->first + length_of(segment->second) <= entry.base) {
            ++segment;
            continue;
        }
        do_segment(segment->first, segment->second);
        segment = segments.erase(segment);
    }
}

}  // namespace

bool PeerVmmSegments::fit(const NodeSocket::Entry& first, const NodeSocket::Entry& last)
{
    return last.base + last.length - start_of(first.base) <= window_bytes;
}

PeerVmmSegments& PeerVmmSegments::instance()
{
    static PeerVmmSegments segments;
    return segments;
}

Status PeerVmmSegments::acquire(const NodeSocket::Address& peer, const Range& range, int device,
                                Window*& window, std::byte*& at)
{
    const std::lock_guard lock(mutex_);
    take_in(device);
    window = map(peer.process, range, device);
    if (window == nullptr) {
        (void)NodeSocket::instance().send(peer, NodeSocket::What::lost, {}, {});
        return Status::transport_error;
    }
    window->users++;
    at = window->base + (range.address - window->start);
    return Status::ok;
}

PeerVmmSegments::Window* PeerVmmSegments::map(std::uint64_t process, const Range& range, int device)
{
    const Segments& segments = processes_[process];
    auto first = segments.upper_bound(range.address);
    if (first != segments.begin()) --first;
    const auto last = segments.lower_bound(range.address + range.length);
    VmmDigest digest;
    for (auto segment = first; segment != last; ++segment)
        digest.add(segment->first, segment->second.length, segment->second.id);
    if (first == last || digest.value() != range.digest) return nullptr;

    Window* const window = find_window(process, start_of(first->first), device);
    for (auto segment = first; window != nullptr && segment != last; ++segment) {
        const auto& [base, known] = *segment;
        if (window->mapped.contains(base)) continue;
        if (failed(gpu::runtime()->vmm().map_segment(
                known.handle, device, window->base + (base - window->start), known.length)))
            return nullptr;
        window->mapped[base] = known.length;
    }
    return window;
}

void PeerVmmSegments::release(Window* window)
{
    const std::lock_guard lock(mutex_);
    window->users--;
}

void PeerVmmSegments::listen(int device)
{
    const std::lock_guard lock(mutex_);
    take_in(device);
}

void PeerVmmSegments::take_in(int device)
{
    NodeSocket::Message message;
    std::vector<int> descriptors;
    while (NodeSocket::instance().receive(message, descriptors)) {
        switch (message.what) {
        case NodeSocket::What::lost:
            VmmExports::instance().forget(message.process);
            break;
        case NodeSocket::What::freed:
            PeerMappings::instance().note_freed(message.owner,
                                                {message.entries.data(), message.count});
            break;
        case NodeSocket::What::mapped:
        case NodeSocket::What::unmapped:
            take_in(message, descriptors, device);
            break;
        }
        for (const int descriptor : descriptors) ::close(descriptor);
    }
}

void PeerVmmSegments::take_in(const NodeSocket::Message& message, std::span<const int> descriptors,
                              int device)
{
    const bool is_mapped = message.what == NodeSocket::What::mapped;
    Segments& segments = processes_[message.process];
    for (std::uint32_t i = 0; i < message.count; i++) {
        const NodeSocket::Entry& entry = message.entries[i];
        if (is_mapped && is_known(segments, entry)) continue;  // may be in use
        drop(message.process, entry);
        if (i < descriptors.size() && device >= 0) import(segments, entry, descriptors[i], device);
    }
}

bool PeerVmmSegments::is_known(const Segments& segments, const NodeSocket::Entry& entry)
{
    const auto found = segments.find(entry.base);
    return found != segments.end() && found->second.length == entry.length &&
           found->second.id == entry.id;
}

void PeerVmmSegments::import(Segments& segments, const NodeSocket::Entry& entry, int descriptor,
                             int device)
{
    Known known{entry.length, entry.id, {}};
    if (!failed(gpu::runtime()->vmm().import_segment(descriptor, device, known.handle)))
        segments[entry.base] = known;
}

// Drops the segments that the entry overlaps. Their addresses belong to another segment now, or to
// none.
void PeerVmmSegments::drop(std::uint64_t process, const NodeSocket::Entry& entry)
{
    for (Window& w : windows_) {
        if (w.process != process) continue;
        erase_overlapping(w.mapped, entry, [&](std::uint64_t base, std::uint64_t length) {
            if (!gpu::runtime()->vmm().unmap_segment(w.base + (base - w.start), length))
                w.is_broken = true;
        });
    }
    erase_overlapping(processes_[process], entry, [](std::uint64_t, const Known& known) {
        gpu::runtime()->vmm().release_segment(known.handle);
    });
}

PeerVmmSegments::Window* PeerVmmSegments::find_window(std::uint64_t process, std::uint64_t start,
                                                      int device)
{
    for (Iterator w = windows_.begin(); w != windows_.end(); ++w) {
        if (w->is_broken || w->process != process || w->start != start || w->device != device)
            continue;
        windows_.splice(windows_.begin(), windows_, w);
        return &*w;
    }
    close_oldest();
    std::byte* const base = gpu::runtime()->vmm().reserve_addresses(window_bytes);
    if (base == nullptr) return nullptr;
    return &windows_.emplace_front(Window{process, start, device, base, 0, false, {}});
}

PeerVmmSegments::Iterator PeerVmmSegments::close(Iterator window)
{
    for (const auto& [base, length] : window->mapped) {
        if (!gpu::runtime()->vmm().unmap_segment(window->base + (base - window->start), length))
            window->is_broken = true;
    }
    if (!window->is_broken) gpu::runtime()->vmm().free_addresses(window->base, window_bytes);
    return windows_.erase(window);
}

void PeerVmmSegments::close_oldest()
{
    for (Iterator w = windows_.end(); windows_.size() >= max_windows && w != windows_.begin();) {
        --w;
        if (w->users == 0) w = close(w);
    }
}

void PeerVmmSegments::clear()
{
    const std::lock_guard lock(mutex_);
    take_in(-1);
    for (Iterator w = windows_.begin(); w != windows_.end();)
        w = w->users == 0 ? close(w) : std::next(w);
    for (const auto& [process, segments] : processes_) {
        for (const auto& [base, known] : segments)
            gpu::runtime()->vmm().release_segment(known.handle);
    }
    processes_.clear();
}

std::size_t PeerVmmSegments::size()
{
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Window& w : windows_) count += w.mapped.size();
    return count;
}

}  // namespace hier
