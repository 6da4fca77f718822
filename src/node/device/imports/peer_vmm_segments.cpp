// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/imports/peer_vmm_segments.hpp"

#include <unistd.h>

#include "base/statistics.hpp"
#include "gpu/runtime.hpp"
#include "memory/vmm_digest.hpp"

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
void erase_overlapping(Segments& segments, const ExportEntry& entry, Do&& do_segment)
{
    auto segment = segments.upper_bound(entry.base);
    if (segment != segments.begin()) --segment;
    while (segment != segments.end() && segment->first < entry.end()) {
        if (segment->first + length_of(segment->second) <= entry.base) {
            ++segment;
            continue;
        }
        do_segment(segment->first, segment->second);
        segment = segments.erase(segment);
    }
}

}  // namespace

bool PeerVmmSegments::fit(const ExportEntry& first, const ExportEntry& last)
{
    return last.base + last.length - start_of(first.base) <= window_bytes;
}

PeerVmmSegments& PeerVmmSegments::instance()
{
    static PeerVmmSegments segments;
    return segments;
}

Status PeerVmmSegments::acquire(const PeerTable& owner, const Range& range, int device,
                                Window*& window, std::byte*& at)
{
    const std::lock_guard lock(mutex_);
    window = map(owner.process(), range, device);
    if (window == nullptr) {
        (void)ExportTable::instance().say_lost(owner.process());
        return Status::transport_error;
    }
    window->users++;
    at = window->base + (range.address - window->start);
    return Status::ok;
}

PeerVmmSegments::Window* PeerVmmSegments::map(std::uint64_t process, const Range& range, int device)
{
    const Segments& segments = processes_[process];
    if (range.length == 0 || range.length > UINT64_MAX - range.address) return nullptr;
    auto first = segments.upper_bound(range.address);
    if (first == segments.begin()) return nullptr;
    --first;
    const std::uint64_t range_end = range.address + range.length;
    std::uint64_t end = first->first;  // of the segments that follow one another
    VmmDigest digest;
    auto last = first;
    for (; last != segments.end() && last->first == end && end < range_end; ++last) {
        digest.add(last->first, last->second.length, last->second.id);
        end = last->first + last->second.length;
    }
    if (end < range_end || end - start_of(first->first) > window_bytes ||
        digest.value() != range.digest)
        return nullptr;

    Window* const window = find_window(process, start_of(first->first), device);
    bool is_known = true;
    for (auto segment = first; window != nullptr && segment != last; ++segment) {
        const auto& [base, known] = *segment;
        if (window->mapped.contains(base)) continue;
        is_known = false;
        if (failed(gpu::runtime()->vmm().map_segment(
                known.handle, device, window->base + (base - window->start), known.length)))
            return nullptr;
        window->mapped[base] = known.length;
    }
    Statistics::instance().add(is_known ? HIER_STATISTIC_MAPPING_HITS
                                        : HIER_STATISTIC_MAPPING_MISSES);
    return window;
}

void PeerVmmSegments::release(Window* window)
{
    const std::lock_guard lock(mutex_);
    window->users--;
}

bool PeerVmmSegments::take_in(const PeerTable& owner, std::span<const ExportEntry> entries,
                              std::uint64_t version, int device)
{
    const std::lock_guard lock(mutex_);
    drop_missing(owner.process(), entries);
    Segments& segments = processes_[owner.process()];
    for (const ExportEntry& entry : entries) {
        if (entry.kind != ExportEntry::Kind::segment || entry.descriptor < 0 || device < 0)
            continue;
        if (is_known(segments, entry)) continue;  // may be in use
        const int descriptor = owner.pull(entry.descriptor);
        const bool is_still_it = owner.version() == version;
        Known known{entry.length, entry.id, {}};
        if (is_still_it && descriptor >= 0) {
            drop(owner.process(), entry);
            if (!failed(gpu::runtime()->vmm().import_segment(descriptor, device, known.handle)))
                segments[entry.base] = known;
        }
        if (descriptor >= 0) ::close(descriptor);
        if (!is_still_it) return false;
    }
    return true;
}

void PeerVmmSegments::drop_missing(std::uint64_t process, std::span<const ExportEntry> entries)
{
    std::map<std::uint64_t, const ExportEntry*> there;  // by base
    for (const ExportEntry& entry : entries) {
        if (entry.kind == ExportEntry::Kind::segment) there[entry.base] = &entry;
    }
    std::vector<ExportEntry> missing;
    for (const auto& [base, known] : processes_[process]) {
        const ExportEntry entry{base, known.length, known.id, -1, ExportEntry::Kind::segment};
        const auto found = there.find(base);
        if (found == there.end() || !found->second->is_same(entry)) missing.push_back(entry);
    }
    for (const ExportEntry& entry : missing) drop(process, entry);
}

bool PeerVmmSegments::is_known(const Segments& segments, const ExportEntry& entry)
{
    const auto found = segments.find(entry.base);
    return found != segments.end() && found->second.length == entry.length &&
           found->second.id == entry.id;
}

// Drops the segments that the entry overlaps. Their addresses belong to another segment now, or to
// none.
void PeerVmmSegments::drop(std::uint64_t process, const ExportEntry& entry)
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
    make_room();
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

// Closes windows that hold nothing any more, and if there are too many others, the oldest of these.
void PeerVmmSegments::make_room()
{
    for (Iterator w = windows_.begin(); w != windows_.end();)
        w = w->users == 0 && w->mapped.empty() ? close(w) : std::next(w);
    for (Iterator w = windows_.end(); windows_.size() >= max_windows && w != windows_.begin();) {
        --w;
        if (w->users == 0) w = close(w);
    }
}

void PeerVmmSegments::clear()
{
    const std::lock_guard lock(mutex_);
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
