// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/receive_offer.hpp"

#include <unistd.h>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "node/device/exports/exported_allocations.hpp"
#include "node/device/exports/vmm_exports.hpp"
#include "node/host/cma_path.hpp"

namespace hier {
namespace {

bool is_shareable(const Allocation& memory)
{
    return memory.kind == MemoryKind::device && memory.is_exportable;
}

}  // namespace

ReceiveOffer::ReceiveOffer(const NodeContext& context, DeviceCells& cells, PeerTables tables,
                           bool has_cma)
    : context_(context), cells_(cells), tables_(std::move(tables)), has_cma_(has_cma)
{
}

void ReceiveOffer::begin()
{
    const Region& into = context_.binding.receive;
    // can_be_written() writes some bytes again, so nobody else may write yet.
    is_writable_ = has_cma_ && into.memory.kind == MemoryKind::pinned && can_be_written(into);
    if (++calls_ % 16 == 0) {  // now and then, so that freed memory comes free
        VmmExports::instance().look_after();
        PeerTable::take_in_all(context_.device);
    }
}

void ReceiveOffer::write(NodeOffer& offer)
{
    const Allocation& memory = context_.binding.receive.memory;
    const bool is_host =
        memory.kind == MemoryKind::host || (memory.kind == MemoryKind::pinned && is_writable_);
    offer.path = is_host && has_cma_ ? WritePath::by_cpu : WritePath::by_cells;
    if (is_of_device(memory) && gpu::peers_may_write()) write_device(offer);
}

bool ReceiveOffer::is_for_engines()
{
    const Allocation& memory = context_.binding.receive.memory;
    if (!is_of_device(memory) || !gpu::peers_may_write()) return false;
    export_allocation();
    return is_exported_whole();
}

void ReceiveOffer::export_allocation()
{
    const Allocation& memory = context_.binding.receive.memory;
    const auto base = reinterpret_cast<std::uint64_t>(memory.base);
    if (exported_.base == base && exported_.length == memory.length && exported_.id == memory.id &&
        memory.id != 0)
        return;
    exported_ = {base, memory.length, memory.id, static_cast<std::int32_t>(getpid()), 0, {}};
    is_exportable_ =
        is_shareable(memory) && gpu::runtime()->export_memory(memory, exported_.handle);
    if (is_exportable_)
        ExportedAllocations::instance().note(
            {base, memory.length, memory.id, -1, ExportEntry::Kind::allocation}, memory.device);
}

bool ReceiveOffer::is_exported_whole() const
{
    const Region& into = context_.binding.receive;
    return is_exportable_ && into.base + into.length <= into.memory.base + into.memory.length;
}

void ReceiveOffer::write_device(NodeOffer& offer)
{
    const Allocation& memory = context_.binding.receive.memory;
    export_allocation();
    if (is_exported_whole()) {
        offer.path = WritePath::by_device;
        offer.memory = exported_;
    } else if (is_shareable(memory) && share_segments(offer.vmm_digest)) {
        offer.path = WritePath::by_segments;
    } else if (const ExportedMemory* lent = cells_.lend(memory.device); lent != nullptr) {
        offer.path = WritePath::by_device_cells;
        offer.memory = *lent;
    }
}

bool ReceiveOffer::share_segments(std::uint64_t& digest)
{
    if (!tables_.can_pull ||
        !VmmExports::instance().share(context_.binding.receive.whole(), tables_.all, digest))
        return false;
    if (!shares_segments_)
        log(HIER_LOG_INFO,
            "device memory that the application has mapped: its peers map its segments");
    shares_segments_ = true;
    return true;
}

}  // namespace hier
