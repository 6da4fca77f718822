// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/vmm_exports.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "memory/vmm_digest.hpp"
#include "node/device/peer_vmm_segments.hpp"

namespace hier {
namespace {

NodeSocket::Entry entry_of(const gpu::VmmSegment& segment)
{
    return {reinterpret_cast<std::uint64_t>(segment.base), segment.length, segment.id};
}

}  // namespace

VmmExports& VmmExports::instance()
{
    static VmmExports exports;
    return exports;
}

bool VmmExports::share(const Region& region, std::span<const NodeSocket::Address> peers,
                       std::uint64_t& digest)
{
    const int device = region.memory.device;
    const std::lock_guard lock(mutex_);
    shares_++;
    if (NodeSocket::instance().address().process == 0 ||
        !gpu::runtime()->vmm().find_segments(region.base, region.length, device, segments_) ||
        !PeerVmmSegments::fit(entry_of(segments_.front()), entry_of(segments_.back())))
        return false;
    VmmDigest all;
    bool is_told = true;
    for (const gpu::VmmSegment& segment : segments_) {
        is_told = !find(segment, device).is_refused && is_told;
        all.add(reinterpret_cast<std::uint64_t>(segment.base), segment.length, segment.id);
    }
    retired_.send();
    digest = all.value();
    const std::span segments(segments_);
    for (std::size_t i = 0; i < segments.size() && is_told; i += NodeSocket::max_entries)
        is_told = tell(segments.subspan(i, std::min(NodeSocket::max_entries, segments.size() - i)),
                       peers);
    return is_told;
}

VmmExports::Export& VmmExports::find(const gpu::VmmSegment& segment, int device)
{
    auto at = exports_.upper_bound(segment.base);
    if (at != exports_.begin()) --at;
    while (at != exports_.end() && at->first < segment.base + segment.length) {
        const gpu::VmmSegment& known = at->second.segment;
        if (known.base == segment.base && known.length == segment.length && known.id == segment.id)
            return at->second;
        const auto next = std::next(at);
        if (known.base + known.length > segment.base) retire(at);
        at = next;
    }
    return exports_.insert_or_assign(segment.base, Export{segment, device, false, {}})
        .first->second;
}

bool VmmExports::tell(std::span<const gpu::VmmSegment> segments,
                      std::span<const NodeSocket::Address> peers)
{
    std::vector<int> descriptors(segments.size(), -1);  // opened when the first peer needs them
    bool is_told = true;
    for (const NodeSocket::Address& peer : peers) {
        if (peer.process != NodeSocket::instance().address().process)
            is_told = tell(segments, peer, descriptors) && is_told;
    }
    for (const int descriptor : descriptors) {
        if (descriptor >= 0) close(descriptor);
    }
    return is_told;
}

bool VmmExports::tell(std::span<const gpu::VmmSegment> segments, const NodeSocket::Address& peer,
                      std::vector<int>& descriptors)
{
    if (!may_be_told(peer)) return false;
    std::vector<NodeSocket::Entry> entries;
    std::vector<int> sent;
    for (std::size_t i = 0; i < segments.size(); i++) {
        Export& known = exports_.at(segments[i].base);
        if (known.told.contains(peer.process)) continue;
        if (descriptors[i] < 0) descriptors[i] = gpu::runtime()->vmm().export_segment(segments[i]);
        known.is_refused = descriptors[i] < 0;
        if (known.is_refused) return false;
        entries.push_back(entry_of(segments[i]));
        sent.push_back(descriptors[i]);
    }
    if (entries.empty()) return true;
    if (!NodeSocket::instance().send(peer, NodeSocket::What::mapped, entries, sent)) return false;
    for (const gpu::VmmSegment& segment : segments)
        exports_.at(segment.base).told[peer.process] = peer;
    return true;
}

// A peer must first hear of segments that are gone, because they may lie where the new ones are.
bool VmmExports::may_be_told(const NodeSocket::Address& peer)
{
    if (retired_.has(peer.process) || !NodeSocket::instance().reaches(peer)) return false;
    const auto lost = losses_.find(peer.process);
    return lost == losses_.end() || lost->second.count < max_losses ||
           shares_ - lost->second.last > pardoned_after;
}

void VmmExports::retire(Exports::iterator at)
{
    for (const auto& [process, peer] : at->second.told)
        retired_.add(peer, entry_of(at->second.segment));
    exports_.erase(at);
}

// Looks at some segments only, because a driver takes some 100 ns for each.
void VmmExports::look_after()
{
    const std::lock_guard lock(mutex_);
    for (std::size_t some = 4 + exports_.size() / 16; some > 0 && !exports_.empty(); some--) {
        auto at = exports_.upper_bound(looked_at_);
        if (at == exports_.end()) at = exports_.begin();
        const Export& known = at->second;
        looked_at_ = known.segment.base;
        if (!gpu::runtime()->is_there(known.segment.base, known.segment.id, known.device))
            retire(at);
    }
    retired_.send();
}

void VmmExports::forget(std::uint64_t process)
{
    const std::lock_guard lock(mutex_);
    Losses& losses = losses_[process];
    if (shares_ - losses.last > pardoned_after) losses.count = 0;
    losses.count++;
    losses.last = shares_;
    for (auto& [base, known] : exports_) known.told.erase(process);
}

}  // namespace hier
