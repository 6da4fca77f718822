// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/peer_buffers.hpp"

#include "base/log.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

PeerBuffers::PeerBuffers(const NodeContext& context, DeviceCells& cells,
                         std::vector<NodeSocket::Address> processes)
    : context_(context), cells_(cells), processes_(std::move(processes)),
      peers_(index(context.size()))
{
}

WritePath PeerBuffers::reach(int peer)
{
    const WritePath path = context_.segment->slot(peer).path;
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
    const NodeSlot& slot = context_.segment->slot(peer);
    Peer& p = peers_[index(peer)];
    const int device = context_.device;
    if (slot.path == WritePath::by_segments)
        return PeerVmmSegments::instance().acquire(processes_[index(peer)],
                                                   {slot.address, slot.length, slot.vmm_digest},
                                                   device, p.window, p.receive);
    PeerMappings& mappings = PeerMappings::instance();
    if (!mappings.has(slot.memory, device)) PeerVmmSegments::instance().listen(device);
    const Status status = mappings.acquire(slot.memory, device, p.mapping);
    if (failed(status)) return status;
    if (slot.path == WritePath::by_device_cells) {
        cells_.use(peer, p.mapping->base);
    } else {
        p.receive = p.mapping->base + (slot.address - slot.memory.base);
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
