// SPDX-License-Identifier: BSD-3-Clause
#include "team/team.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "team/tracing.hpp"

namespace hier {

Team::Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
           const TeamParts& parts)
    : rank_(bootstrap.rank), meter_(setup_), memory_(setup_)
{
    set_up_team(config, bootstrap, team, parts.network, setup_, [&] {
        executor_ = std::make_unique<Executor>(
            setup_.node.get(), setup_.rail.get(),
            Executor::Limits{
                .watchdog = {.timeout = std::chrono::seconds(config.timeout),
                             .fails = config.timeout_action == HIER_TIMEOUT_FAIL,
                             .rank = rank_},
                .rail_first = std::chrono::microseconds(setup_.oversubscribed ? 1000 : 0),
            });
        planner_ = std::make_unique<CallPlanner>(setup_, rank_, parts.collectives, meter_.tally());
        tracer_ = make_tracer(setup_, rank_);
    });
}

Team::~Team() = default;

Status Team::start(Call call, Request*& request)
{
    if (failed(error())) return error();
    if (!planner_->takes(call) || call.receive.base == nullptr) return Status::bad_argument;
    const bool is_first = requests_.empty();
    request = &requests_.push(std::move(call));
    if (!is_first) return Status::in_progress;
    const Status status = launch(requests_.front());
    if (failed(status)) requests_.withdraw();
    return status;
}

// Begins the first call of the queue. If that fails, whatever the cause, the other ranks hear of
// the failure.
Status Team::launch(const Call& call)
{
    try {
        return begin(call);
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "%s cannot be started: %s", planner_->name_of(call.collective),
            e.what());
        return refuse(Status::out_of_memory);
    }
}

Status Team::begin(const Call& call)
{
    meter_.begin();
    const Choice choice = planner_->choose(call);
    Binding binding{};
    bool needs_bounce = false;
    Status bound = memory_.bind(call, choice, binding, needs_bounce);
    if (failed(bound)) return refuse(bound);
    binding.sequence = ++sequence_;
    meter_.take(choice, binding.total);
    const ProgramKey key{.collective = call.collective,
                         .bytes = call.bytes,
                         .stride = call.pitch(),
                         .blocks = call.blocks,
                         .in_place = call.in_place,
                         .has_bounce = needs_bounce,
                         .is_on_device = is_of_device(binding.receive.memory) ||
                                         is_of_device(binding.send.memory)};
    if (tracer_) tracer_->write();  // of the last call; prepare() may drop its program
    PreparedProgram& prepared = planner_->prepare(key, choice);
    if (needs_bounce) bound = memory_.bind_bounce(*prepared.program, binding);
    if (!failed(bound)) bound = connect(prepared);
    if (failed(bound)) return refuse(bound);
    return executor_->start(*prepared.program, binding, trace_of(prepared));
}

// A rank connects to another one when a call first exchanges data between them.
Status Team::connect(PreparedProgram& prepared)
{
    if (!setup_.rail || prepared.is_connected) return Status::ok;
    std::vector<int> peers;
    for (const Program::Pair& pair : prepared.program->pairs(Level::rail))
        peers.push_back(pair.peer);
    const Status status = setup_.rail->connect(std::move(peers));
    prepared.is_connected = !failed(status);
    return status;
}

// nullptr: nobody traces this call.
Trace* Team::trace_of(const PreparedProgram& prepared)
{
    if (!tracer_) return nullptr;
    tracer_->reserve(prepared.program->size());
    if (!tracer_->wants(sequence_)) return nullptr;
    return tracer_->begin(sequence_, *prepared.program, describe_call(setup_, prepared));
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
    if (!requests_.empty()) return;
    if (failed(error())) return setup_.rail->answer_late();
    if (!setup_.rail->has_failed()) return;
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
    memory_.end(failed(status));
    if (!failed(status)) {
        meter_.end();
    } else {
        broken_.store(status, std::memory_order_release);
        log(HIER_LOG_ERROR, "%s failed on rank %d of %d: %s; this communicator takes no more",
            planner_->name_of(requests_.front().collective), rank_, size(), to_string(status));
    }
    requests_.pop(status);
    // After an error all calls that wait end with the same error.
    while (!requests_.empty()) {
        status = failed(error()) ? error() : launch(requests_.front());
        if (status == Status::in_progress) return status;
        requests_.pop(status);
    }
    return Status::ok;
}

}  // namespace hier
