// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_transport.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "node/device/sdma_transport.hpp"
#include "node/host/host_transport.hpp"

namespace hier {

Status NodeTransport::begin(const Binding& binding)
{
    binding_ = binding;
    return has_failed() ? Status::peer_failed : Status::ok;
}

bool NodeTransport::has_failed() const
{
    return segment_ && segment().failure().load(std::memory_order_relaxed) != 0;
}

Status NodeTransport::announce(int)
{
    NodeSlot& slot = segment().slot(segment().rank());
    slot.address = reinterpret_cast<std::uint64_t>(binding_.receive.base);
    slot.length = binding_.receive.length;
    slot.ready.store(binding_.sequence, std::memory_order_release);
    slot.entered.store(binding_.sequence, std::memory_order_release);
    // Either who fails sees that we are in the call, or we see, before we write, that he has failed.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Status::ok;
}

Status NodeTransport::enter(int)
{
    segment().slot(segment().rank()).entered.store(binding_.sequence, std::memory_order_release);
    return Status::ok;
}

Status NodeTransport::entered(int peer)
{
    const std::uint64_t word = segment().slot(peer).entered.load(std::memory_order_acquire);
    return word < binding_.sequence ? Status::in_progress : Status::ok;
}

Status NodeTransport::announced(int peer)
{
    const NodeSlot& slot = segment().slot(peer);
    const std::uint64_t sequence = slot.ready.load(std::memory_order_acquire);
    if (sequence < binding_.sequence) return Status::in_progress;
    if (sequence == binding_.sequence && slot.length != binding_.receive.length) {
        log(HIER_LOG_ERROR,
            "ranks disagree on the size of a call: %zu bytes in all here, %zu at node rank "
            "%d",
            binding_.receive.length, static_cast<std::size_t>(slot.length), peer);
        return Status::mismatch;
    }
    return Status::ok;
}

const std::byte* NodeTransport::source(const Transfer& transfer) const
{
    return binding_.at(transfer.from, transfer.slice.source);
}

Status NodeTransport::copy(const Transfer& transfer)
{
    std::memcpy(binding_.at(transfer.to, transfer.slice.target), source(transfer),
                transfer.slice.length);
    return Status::ok;
}

std::uint32_t NodeTransport::arrived(int peer)
{
    const std::uint64_t word =
        segment().flag(segment().rank(), peer).by_cpu.load(std::memory_order_acquire);
    return Signal::count(word, binding_.sequence);
}

Status NodeTransport::progress(Completions&)
{
    return has_failed() && !raised_ ? Status::peer_failed : Status::ok;
}

void NodeTransport::tell(std::uint32_t heartbeat)
{
    if (!segment_) return;
    segment()
        .slot(segment().rank())
        .heartbeat.store(Signal::encode(binding_.sequence, heartbeat), std::memory_order_relaxed);
}

std::uint32_t NodeTransport::heard()
{
    std::uint32_t highest = 0;
    for (int peer = 0; segment_ && peer < segment().size(); peer++) {
        if (peer == segment().rank()) continue;
        const std::uint64_t word = segment().slot(peer).heartbeat.load(std::memory_order_relaxed);
        highest = std::max(highest, Signal::count(word, binding_.sequence));
    }
    return highest;
}

void NodeTransport::raise(Status status)
{
    raised_ = true;
    if (!segment_) return;
    segment().failure().store(static_cast<int>(status), std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // announce()
}

void NodeTransport::stop()
{
    if (segment_) segment().slot(segment().rank()).stopped.store(1, std::memory_order_release);
}

bool NodeTransport::may_write(int peer, std::uint32_t count)
{
    const auto is_in = [&](int rank) {
        return segment().slot(rank).ready.load(std::memory_order_acquire) >= binding_.sequence;
    };
    // Who enters later sees that we have failed.
    return is_in(segment().rank()) && is_in(peer) &&
           segment().slot(peer).stopped.load(std::memory_order_acquire) == 0 &&
           arrived(peer) < count;
}

namespace {

// nullptr: shared memory is to be used.
std::unique_ptr<CmaTransport> make_cma(const std::shared_ptr<NodeSegment>& segment,
                                       const Group& group, const std::vector<int>& pids, int intra)
{
    if (intra == HIER_INTRA_SHM) return nullptr;
    const std::string refusal = try_cma(group, pids);
    if (refusal.empty()) return std::make_unique<CmaTransport>(segment, pids);
    if (intra == HIER_INTRA_CMA) {
        throw SetupError("coll_hier_intra is cma, but the kernel refuses it: " + refusal);
    }
    log(HIER_LOG_INFO, "no copies between processes (%s): using shared memory inside the node",
        refusal.c_str());
    return nullptr;
}

// nullptr: none is to be had.
std::unique_ptr<NodePublish> make_publish(const Group& group, int numa)
{
    try {
        return std::make_unique<NodePublish>(group, numa);
    } catch (const SetupError& e) {  // on all ranks
        log(HIER_LOG_INFO, "small blocks are not published (%s)", e.what());
        return nullptr;
    }
}

}  // namespace

std::unique_ptr<NodeTransport> make_node_transport(const Group& group, const NodeRanks& ranks,
                                                   int intra)
{
    const bool is_alone = group.size() == 1;
    if (is_alone && ranks.have_devices) return std::make_unique<SdmaTransport>();
    if (is_alone) return std::make_unique<AloneTransport>();
    const auto segment = std::make_shared<NodeSegment>(
        group, ranks.have_devices ? DeviceCells::shared_bytes(group.size()) : 0);
    auto cma = make_cma(segment, group, ranks.pids, intra);
    if (cma && !ranks.have_devices && intra == HIER_INTRA_CMA) return cma;
    const auto shared = group.collect(static_cast<int>(ranks.share_cores));
    const bool share_cores = std::find(shared.begin(), shared.end(), 1) != shared.end();
    std::unique_ptr<ShmTransport> cells;
    try {
        const bool are_few = cma && !ranks.have_devices;
        const CellShape few =
            share_cores ? HostTransport::shared_core_cells : HostTransport::small_cells;
        cells =
            std::make_unique<ShmTransport>(segment, group, ranks.numa, are_few ? few : CellShape{});
    } catch (const SetupError& e) {  // on all ranks
        if (!cma || ranks.have_devices) throw;
        log(HIER_LOG_INFO, "no cells for small blocks (%s): all of them by CMA", e.what());
        return cma;
    }
    auto publish = ranks.have_devices ? nullptr : make_publish(group, ranks.numa);
    auto host = std::make_unique<HostTransport>(
        segment, std::move(cma), std::move(cells), std::move(publish),
        share_cores ? HostTransport::max_on_shared_cores : HostTransport::max_through_cells);
    if (!ranks.have_devices) return host;
    return std::make_unique<SdmaTransport>(segment, std::move(host),
                                           std::make_unique<DeviceCells>(segment),
                                           group.collect(PieceSocket::instance().address()));
}

}  // namespace hier
