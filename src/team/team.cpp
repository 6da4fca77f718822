// SPDX-License-Identifier: BSD-3-Clause
#include "team/team.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "memory/resident.hpp"
#include "team/tracing.hpp"

namespace hier {

Team::Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
           const TeamParts& parts)
    : rank_(bootstrap.rank)
{
    set_up_team(config, bootstrap, team, parts.network, setup_, [&] {
        executor_ = std::make_unique<Executor>(
            setup_.node.get(), setup_.rail.get(),
            Executor::Limits{
                .watchdog = {.timeout = std::chrono::seconds(config.timeout)},
                .rail_first = std::chrono::microseconds(setup_.oversubscribed ? 1000 : 0),
            });
        for (const MakeCollective make : parts.collectives)
            collectives_.push_back(make(setup_.topology, setup_.rates));
        tracer_ = make_tracer(setup_, rank_);
    });
}

Team::~Team() = default;

Status Team::start(const Call& call, Request*& request)
{
    if (failed(error())) return error();
    const bool is_known = call.collective < collectives_.size() && call.receive.base != nullptr &&
                          collectives_[call.collective]->eligible(call.bytes);
    if (!is_known) return Status::bad_argument;
    const bool is_first = requests_.empty();
    request = &requests_.push(call);
    if (!is_first) return Status::in_progress;
    const Status status = launch(call);
    if (failed(status)) requests_.withdraw();
    return status;
}

// Which memory belongs to a device, for this call.
Status Team::place_memory(const Call& call, Binding& binding) const
{
    const bool is_for_nics = setup_.rail && setup_.rail->traits().is_rdma;
    if (!takes_device_memory() && !is_for_nics) {  // the CPU reaches all of it
        binding.receive.memory = binding.send.memory = {};
        return Status::ok;
    }
    if (failed(call.memory_error)) return call.memory_error;
    // Managed memory is the host's while the CPU has its pages. But NICs may not have that.
    const auto place = [&](Region& region) {
        if (region.memory.kind == MemoryKind::managed &&
            (!takes_device_memory() || (!is_for_nics && is_resident(region.base, region.length))))
            region.memory.device = -1;
    };
    place(binding.receive);
    if (call.in_place) {
        binding.send.memory = binding.receive.memory;
    } else {
        place(binding.send);
    }
    return Status::ok;
}

// What the network does not reach goes through memory that it does. Eager messages are received by
// the CPU; they are sent from the receive buffer, too, where a rank passes on what it received.
Status Team::bind(const Call& call, const Choice& choice, Binding& binding)
{
    binding.send = call.send;
    binding.receive = call.receive;
    binding.eager = choice.eager;
    binding.publish = choice.publish;
    binding.chunks = (call.bytes + choice.chunk - 1) / choice.chunk;
    const Status status = place_memory(call, binding);
    if (failed(status) || !setup_.rail) return status;
    const bool is_on_device =
        is_of_device(binding.receive.memory) || is_of_device(binding.send.memory);
    const bool is_reached =
        choice.eager ? !is_on_device && setup_.rail->register_sources(binding, choice.passes_on())
                     : setup_.rail->register_buffers(binding);
    return is_reached || reserve_bounce(binding) ? Status::ok : Status::out_of_memory;
}

bool Team::reserve_bounce(Binding& binding)
{
    const Allocation& receive = binding.receive.memory;
    const Allocation& send = binding.send.memory;
    const int device = is_of_device(receive) ? receive.device
                       : is_of_device(send)  ? send.device
                                             : -1;
    if (!bounce_) {
        bounce_ = std::make_shared<HostMemory>();
        setup_.rail->keep(bounce_);
    }
    binding.bounce = {bounce_->reserve(device, binding.receive.length), binding.receive.length};
    binding.bounce.memory.kind = bounce_->is_pinned() ? MemoryKind::pinned : MemoryKind::host;
    return binding.bounce.base != nullptr;
}

// Begins the first call of the queue. The other ranks hear of it if that fails, whatever the cause.
Status Team::launch(const Call& call)
{
    try {
        return begin(call);
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "%s cannot be started: %s", collectives_[call.collective]->name(),
            e.what());
        return refuse(Status::out_of_memory);
    }
}

Status Team::begin(const Call& call)
{
    const Choice choice = choose(call);
    Binding binding{};
    const Status bound = bind(call, choice, binding);
    if (failed(bound)) return refuse(bound);
    binding.sequence = ++sequence_;
    const ProgramKey key{call.collective, call.bytes, call.in_place, binding.bounce.base != nullptr,
                         is_of_device(binding.receive.memory) || is_of_device(binding.send.memory)};
    if (tracer_) tracer_->write();  // the last call's; its program may be the one that goes now
    const PreparedProgram& prepared = prepare(key, choice);
    return executor_->start(*prepared.program, binding, trace_of(prepared));
}

const PreparedProgram& Team::prepare(const ProgramKey& key, const Choice& choice)
{
    if (const PreparedProgram* known = programs_.find(key, sequence_)) return *known;
    report(key, choice);
    Plan plan = collectives_[key.collective]->plan({.rank = rank_,
                                                    .bytes = key.bytes,
                                                    .choice = choice,
                                                    .in_place = key.in_place,
                                                    .has_bounce = key.has_bounce,
                                                    .is_on_device = key.is_on_device});
    auto program = std::make_unique<Program>(std::move(plan), setup_.topology, rank_);
    if (tracer_) tracer_->reserve(program->size());
    return programs_.add({key, sequence_, choice, std::move(program)});
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
    const bool is_idle = requests_.empty() && !failed(error());
    if (!is_idle || !setup_.rail->has_failed()) return;
    (void)refuse(Status::peer_failed);
    log(HIER_LOG_ERROR,
        "a call failed while rank %d of %d was in none; this communicator takes no more", rank_,
        size());
}

Status Team::progress()
{
    if (requests_.empty()) return Status::ok;
    Status status = executor_->progress();
    if (status == Status::in_progress) return status;
    if (tracer_) tracer_->end(status);
    if (failed(status)) {
        broken_.store(status, std::memory_order_release);
        log(HIER_LOG_ERROR, "%s failed on rank %d of %d: %s; this communicator takes no more",
            collectives_[requests_.front().collective]->name(), rank_, size(), to_string(status));
    }
    requests_.pop(status);
    // After an error all that wait end with it.
    while (!requests_.empty()) {
        status = failed(error()) ? error() : launch(requests_.front());
        if (status == Status::in_progress) return status;
        requests_.pop(status);
    }
    return Status::ok;
}

}  // namespace hier
