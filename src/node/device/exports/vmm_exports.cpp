// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/vmm_exports.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "memory/vmm_digest.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"

namespace hier {
namespace {

ExportEntry entry_of(const gpu::VmmSegment& segment)
{
    return {reinterpret_cast<std::uint64_t>(segment.base), segment.length, segment.id, -1,
            ExportEntry::Kind::segment};
}

}  // namespace

VmmExports& VmmExports::instance()
{
    static VmmExports exports;
    return exports;
}

bool VmmExports::share(const Region& region, std::span<PeerTable* const> peers,
                       std::uint64_t& digest)
{
    const int device = region.memory.device;
    const std::lock_guard lock(mutex_);
    shares_++;
    if (!ExportTable::instance().refusal().empty() ||
        !gpu::runtime()->vmm().find_segments(region.base, region.length, device, segments_) ||
        !PeerVmmSegments::fit(entry_of(segments_.front()), entry_of(segments_.back())))
        return false;
    bool is_offered = true;
    for (const PeerTable* peer : peers)
        is_offered = (peer == nullptr || may_be_told(*peer)) && is_offered;
    VmmDigest all;
    Change change;
    close_unneeded(change);
    for (const gpu::VmmSegment& segment : segments_) {
        find(segment, device, change).offered = shares_;
        all.add(reinterpret_cast<std::uint64_t>(segment.base), segment.length, segment.id);
    }
    digest = all.value();
    std::vector<Export*> opened;
    for (auto segment = segments_.begin(); is_offered && segment != segments_.end(); ++segment) {
        Export& known = exports_.at(reinterpret_cast<std::uint64_t>(segment->base));
        for (const PeerTable* peer : peers) {
            if (peer != nullptr && !known.owners.contains(peer->process()))
                known.waiting[peer->process()] = peer;
        }
        if (known.waiting.empty() || known.entry.descriptor >= 0) continue;
        is_offered = open(known, change);
        if (is_offered) opened.push_back(&known);
    }
    return apply(change, opened) && is_offered;
}

VmmExports::Export& VmmExports::find(const gpu::VmmSegment& segment, int device, Change& change)
{
    const ExportEntry wanted = entry_of(segment);
    auto at = exports_.upper_bound(wanted.base);
    if (at != exports_.begin()) --at;
    while (at != exports_.end() && at->first < wanted.end()) {
        Export& known = at->second;
        if (known.entry.is_same(wanted)) return known;
        if (known.entry.end() <= wanted.base) {
            ++at;
            continue;
        }
        close(known, change);
        change.gone.push_back(known.entry);
        at = exports_.erase(at);
    }
    return exports_.insert_or_assign(wanted.base, Export{wanted, device}).first->second;
}

bool VmmExports::open(Export& known, Change& change)
{
    if (known.is_refused || !make_room(change)) return false;
    const ExportEntry& e = known.entry;
    const int descriptor = gpu::runtime()->vmm().export_segment(
        {reinterpret_cast<std::byte*>(e.base), e.length, e.id});
    known.is_refused = descriptor < 0;
    if (known.is_refused) return false;
    known.entry.descriptor = descriptor;
    open_.insert(e.base);
    change.put.push_back(known.entry);
    return true;
}

// If all descriptors are taken, the one goes that was asked for longest ago. Its peers may be late,
// or gone. They are offered it again when they need it.
bool VmmExports::make_room(Change& change)
{
    if (open_.size() < max_open) return true;
    Export* oldest = nullptr;
    for (const std::uint64_t base : open_) {
        Export& known = exports_.at(base);
        if (known.offered == shares_) continue;
        if (oldest == nullptr || known.offered < oldest->offered) oldest = &known;
    }
    if (oldest == nullptr) return false;
    close(*oldest, change);
    oldest->waiting.clear();
    change.put.push_back(oldest->entry);
    return true;
}

// While the descriptor is open, a peer that has taken in the table has taken the descriptor too.
void VmmExports::note_owners(Export& known)
{
    std::erase_if(known.waiting, [&](const auto& each) {
        const bool has_it = each.second->seen() >= known.version;
        if (has_it) known.owners.insert(each.first);
        return has_it;
    });
}

void VmmExports::close(Export& known, Change& change)
{
    if (known.entry.descriptor < 0) return;
    note_owners(known);
    change.descriptors.push_back(known.entry.descriptor);
    known.entry.descriptor = -1;
    open_.erase(known.entry.base);
}

void VmmExports::close_unneeded(Change& change)
{
    for (const std::uint64_t base : std::vector(open_.begin(), open_.end())) {
        Export& known = exports_.at(base);
        note_owners(known);
        if (!known.waiting.empty()) continue;
        close(known, change);
        change.put.push_back(known.entry);
    }
}

// A peer that has lost a segment is offered everything again, but not too often.
bool VmmExports::may_be_told(const PeerTable& peer)
{
    Losses& known = losses_[peer.process()];
    const bool is_pardoned = shares_ - known.last > pardoned_after;
    const std::uint64_t losses = peer.losses();
    if (losses != known.told) {
        known = {losses, is_pardoned ? 1 : known.count + 1, shares_};
        for (auto& [base, each] : exports_) each.owners.erase(peer.process());
        return known.count < max_losses;
    }
    return known.count < max_losses || is_pardoned;
}

// The table changes first. So a peer that takes a descriptor notices that it has been closed.
bool VmmExports::apply(Change& change, std::span<Export* const> opened)
{
    if (change.gone.empty() && change.put.empty()) return true;
    const std::uint64_t version = ExportTable::instance().change(change.put, change.gone);
    for (Export* known : opened) known->version = version;
    if (version == 0) {  // no room for more entries
        for (Export* known : opened) {
            known->waiting.clear();
            close(*known, change);
        }
        std::erase_if(change.put, [](const ExportEntry& e) { return e.descriptor >= 0; });
        (void)ExportTable::instance().change(change.put, change.gone);
    }
    for (const int descriptor : change.descriptors) ::close(descriptor);
    return version != 0;
}

// Looks at some segments only, because a driver takes some 100 ns for each.
void VmmExports::look_after()
{
    const std::lock_guard lock(mutex_);
    Change change;
    close_unneeded(change);
    for (std::size_t some = 4 + exports_.size() / 16; some > 0 && !exports_.empty(); some--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        Export& known = at->second;
        looked_at_ = known.entry.base;
        const auto* const base = reinterpret_cast<const std::byte*>(known.entry.base);
        if (gpu::runtime()->is_there(base, known.entry.id, known.device)) continue;
        close(known, change);
        change.gone.push_back(known.entry);
        exports_.erase(at);
    }
    (void)apply(change, {});
}

void VmmExports::clear()
{
    const std::lock_guard lock(mutex_);
    Change change;
    for (auto& [base, known] : exports_) {
        close(known, change);
        change.gone.push_back(known.entry);
    }
    exports_.clear();
    (void)apply(change, {});
}

std::size_t VmmExports::open_descriptors()
{
    const std::lock_guard lock(mutex_);
    return open_.size();
}

}  // namespace hier
