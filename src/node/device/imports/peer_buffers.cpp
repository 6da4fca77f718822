// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/imports/peer_buffers.hpp"

#include "base/log.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

PeerBuffers::PeerBuffers(const NodeContext& context, DeviceCells& cells, PeerTables tables)
    : context_(context), cells_(cells), tables_(std::move(tables)), peers_(index(context.size()))
{
}

WritePath PeerBuffers::reach(int peer)
{
    const WritePath path = context_.offer(peer).path;
    if (path == WritePath::by_cpu || path == WritePath::by_cells) return path;
    if (context_.queue == nullptr) return WritePath::by_cells;
    if (failed(map(peer))) {
        log(HIER_LOG_INFO, "node rank %d's device memory cannot be mapped: through shared memory",
            peer);
        return WritePath::by_cells;
    }
    return path;
}

Status PeerBuffers::map(int peer)
{
    const NodeOffer& offer = context_.offer(peer);
    Peer& p = peers_[index(peer)];
    const int device = context_.device;
    PeerTable* const table = tables_.all[index(peer)];
    if (table != nullptr) table->take_in(device);
    if (offer.path == WritePath::by_segments) {
        if (table == nullptr) return Status::transport_error;
        const Status status = PeerVmmSegments::instance().acquire(
            *table,
            {offer.address - offer.before, offer.before + offer.length + offer.after,
             offer.vmm_digest},
            device, p.window, p.receive);
        if (!failed(status)) p.receive += offer.before;
        return status;
    }
    const Status status = PeerMappings::instance().acquire(offer.memory, device, p.mapping);
    if (failed(status)) return status;
    if (offer.path == WritePath::by_device_cells) {
        cells_.use(peer, p.mapping->base);
    } else {
        p.receive = p.mapping->base + (offer.address - offer.memory.base);
    }
    return Status::ok;
}

void PeerBuffers::end()
{
    for (Peer& p : peers_) {
        if (p.mapping != nullptr) PeerMappings::instance().release(p.mapping);
        if (p.window != nullptr) PeerVmmSegments::instance().release(p.window);
        p.mapping = nullptr;
        p.window = nullptr;
    }
}

}  // namespace hier
