// SPDX-License-Identifier: BSD-3-Clause
#include "team/team.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "memory/resident.hpp"
#include "net/ucx/ucx_config.hpp"
#include "node/node_transport.hpp"

namespace hier {
namespace {

constexpr std::size_t max_prepared = 8;  // programs kept

}  // namespace

const Team::Prepared& Team::prepare(const Call& call, const AllgatherChoice& choice)
{
    for (Prepared& p : prepared_) {
        if (p.call != call) continue;
        p.used = sequence_;
        return p;
    }
    const auto shards = equal_shards(topology_.size(), call.bytes_per_rank);
    report(call, choice);
    const AllgatherShape shape{
        .shards = shards,
        .chunk = choice.chunk,
        .route = choice.route,
        .in_place = call.in_place,
        .bounce = call.has_bounce,
        .depth = choice.depth,
        .eager = choice.eager,
        .publish = choice.publish,
        .own_whole = choice.own_whole,
        .copy_whole = choice.own_whole && call.is_on_device,
    };
    auto made =
        std::make_unique<Program>(plan_allgather(topology_, rank_, shape), topology_, rank_);
    if (tracer_) tracer_->reserve(made->size());
    if (prepared_.size() == max_prepared) {
        prepared_.erase(
            std::min_element(prepared_.begin(), prepared_.end(),
                             [](const auto& a, const auto& b) { return a.used < b.used; }));
    }
    return prepared_.emplace_back(Prepared{call, sequence_, choice, std::move(made)});
}

bool Team::takes_device_memory() const { return node_->takes_device_memory(); }

Status Team::inspect(const hier_allgather_args& args, Binding& binding) const
{
    const std::size_t offset = static_cast<std::size_t>(rank_) * args.bytes_per_rank;
    const auto ranks = static_cast<std::size_t>(topology_.size());
    binding.receive = {static_cast<std::byte*>(args.recv), args.bytes_per_rank * ranks};
    // Read only; a Region has one type for both directions.
    binding.send = {args.send == nullptr
                        ? binding.receive.base + offset
                        : const_cast<std::byte*>(static_cast<const std::byte*>(args.send)),
                    args.bytes_per_rank};
    binding.send_offset = offset;
    // Managed memory is the host's while the CPU has its pages, but for NICs, which may not have it.
    const bool is_for_nics = rail_ && is_rdma(rail_->choice());
    if (!takes_device_memory() && !is_for_nics) return Status::ok;  // the CPU reaches all of it
    const auto look = [&](Region& region) {
        const Status status = gpu::inspect(region.base, region.memory);
        if (region.memory.kind == MemoryKind::managed &&
            (!takes_device_memory() || (!is_for_nics && is_resident(region.base, region.length))))
            region.memory.device = -1;
        return status;
    };
    Status status = look(binding.receive);
    if (args.send == nullptr) {
        binding.send.memory = binding.receive.memory;
    } else if (!failed(status)) {
        status = look(binding.send);
    }
    return status;
}

Status Team::reserve_bounce(Binding& binding)
{
    const Allocation& receive = binding.receive.memory;
    const Allocation& send = binding.send.memory;
    const int device = is_of_device(receive) ? receive.device
                       : is_of_device(send)  ? send.device
                                             : -1;
    if (!bounce_) {
        bounce_ = std::make_shared<HostMemory>();
        rail_->keep(bounce_);
    }
    binding.bounce = {bounce_->reserve(device, binding.receive.length), binding.receive.length};
    if (binding.bounce.base == nullptr) return Status::out_of_memory;
    binding.bounce.memory.kind = bounce_->is_pinned() ? MemoryKind::pinned : MemoryKind::host;
    return Status::ok;
}

Status Team::start(const hier_allgather_args& args)
{
    if (failed(error())) return error();
    if (status() == Status::in_progress || args.recv == nullptr || args.bytes_per_rank == 0)
        return Status::bad_argument;
    Binding binding{};
    Status status = inspect(args, binding);
    const bool is_device =
        is_of_device(binding.receive.memory) || is_of_device(binding.send.memory);
    const AllgatherChoice choice = choose(args.bytes_per_rank);
    binding.eager = choice.eager;
    binding.publish = choice.publish;
    binding.chunks = (args.bytes_per_rank + choice.chunk - 1) / choice.chunk;
    // What the network does not reach goes through memory that it does. Eager messages land by the
    // CPU, and are sent from the receive buffer, too, where others' shards go on.
    const auto is_reached = [&] {
        return choice.eager
                   ? !is_device && rail_->register_sources(binding, choice.route != Route::direct)
                   : rail_->register_buffers(binding);
    };
    const bool has_bounce = topology_.nodes() > 1 && !failed(status) && !is_reached();
    if (has_bounce) status = reserve_bounce(binding);
    if (failed(status)) return refuse(status);
    binding.sequence = ++sequence_;
    const Call call{args.bytes_per_rank, args.send == nullptr, has_bounce, is_device};
    if (tracer_) tracer_->write();  // the last call's; its program may be the one that goes now
    const Prepared& prepared = prepare(call, choice);
    status = executor_->start(*prepared.program, binding, trace_of(prepared));
    status_.store(status, std::memory_order_release);
    return status;
}

Status Team::refuse(Status status)
{
    if (failed(error())) return error();
    broken_.store(status, std::memory_order_release);
    executor_->refuse(status);
    return status;
}

void Team::answer_failure()
{
    const bool is_idle = status() != Status::in_progress && !failed(error());
    if (!is_idle || !rail_->has_failed()) return;
    (void)refuse(Status::peer_failed);
    log(HIER_LOG_ERROR,
        "an allgather failed while rank %d of %d was in none; this communicator takes no more",
        rank_, topology_.size());
}

Status Team::progress()
{
    const Status status = executor_->progress();
    if (tracer_ && status != Status::in_progress) tracer_->end(status);
    if (failed(status)) {
        broken_.store(status, std::memory_order_release);
        log(HIER_LOG_ERROR,
            "an allgather failed on rank %d of %d: %s; this communicator takes no more", rank_,
            topology_.size(), to_string(status));
    }
    if (status != Status::in_progress) status_.store(status, std::memory_order_release);
    return status;
}

}  // namespace hier
