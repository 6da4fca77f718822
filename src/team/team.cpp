// SPDX-License-Identifier: BSD-3-Clause
#include "team/team.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "team/tracing.hpp"

namespace hier {

Team::Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
           const TeamParts& parts)
    : rank_(bootstrap.rank), meter_(setup_), memory_(setup_, bootstrap.rank)
{
    set_up_team(config, bootstrap, team, parts.network, setup_, [&] {
        executor_ = std::make_unique<Executor>(
            setup_.node.get(), setup_.rail.get(),
            Executor::Limits{
                .watchdog = {.timeout = std::chrono::seconds(config.timeout),
                             .fails = config.timeout_action == HIER_TIMEOUT_FAIL,
                             .rank = rank_},
                .rail_first = std::chrono::microseconds(setup_.oversubscribed ? 1000 : 0),
                // A look takes some 2 ns, by estimate. Where ranks share cores, those that a rank waits for
                // need the core.
                .exchange_looks = setup_.oversubscribed ? 1u : 500u,
            });
        planner_ = std::make_unique<CallPlanner>(setup_, rank_, parts.collectives, meter_.tally());
        tracer_ = make_tracer(setup_, rank_);
    });
}

Team::~Team() = default;

double Team::network_time(std::size_t bytes) const
{
    if (!has_rail()) return 0;
    const Topology& topology = setup_.topology;
    const auto members = static_cast<int>(topology.ranks_on(topology.node_of(rank_)).size());
    const int nics = (setup_.rates.nics > 0 ? setup_.rates.nics : members) * setup_.rates.lanes;
    return (size() - members) * static_cast<double>(bytes) / (nics * setup_.rates.nic);
}

bool Team::takes(const Call& call) const
{
    const auto is_before = [](const Extent& a, const Extent& b) { return a.offset < b.offset; };
    const bool are_in_order = call.displacements.empty() ||
                              std::is_sorted(call.blocks.begin(), call.blocks.end(), is_before);
    return planner_->takes(call) && call.receive.base != nullptr && are_in_order;
}

Status Team::start(Call call, Request*& request, Launch when, const Listener& listener)
{
    if (failed(error())) return error();
    if (!takes(call)) return Status::bad_argument;
    request = &requests_.take(std::move(call));
    return enqueue(*request, when, listener);
}

Status Team::prepare(Call call, Request*& request)
{
    if (!takes(call) || (request != nullptr && request->is_running())) return Status::bad_argument;
    if (request == nullptr)
        request = &requests_.keep(std::move(call), *this);
    else
        requests_.change(*request, std::move(call));
    return Status::ok;
}

Status Team::start(Request& request, Launch when, const Listener& listener)
{
    if (failed(error())) return error();
    return request.is_running() ? Status::bad_argument : enqueue(request, when, listener);
}

void Team::take(Request& request)
{
    if (requests_.empty()) has_launched_ = false;
    requests_.append(request);
}

Status Team::enqueue(Request& request, Launch when, const Listener& listener)
{
    if (requests_.empty()) {
        has_launched_ = when != Launch::later;
        const Status status = has_launched_ ? launch(request, when) : Status::in_progress;
        if (status != Status::in_progress) return status;
    }
    requests_.push(request, listener);
    return Status::in_progress;
}

// Begins the first call of the queue. If that fails, whatever the cause, the other ranks hear of
// the failure.
Status Team::launch(Request& request, Launch when)
{
    try {
        return begin(request, when);
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "%s cannot be started: %s",
            planner_->name_of(request.call().collective), e.what());
        return refuse(Status::out_of_memory);
    }
}

Status Team::begin(Request& request, Launch when)
{
    meter_.begin();
    if (tracer_) tracer_->write();  // of the last call; prepare() may drop its program
    PreparedCall& prepared = request.prepared();
    if (prepared.serves(planner_->drops())) {
        meter_.tally().add(HIER_STATISTIC_PROGRAM_HITS);
    } else {
        request.prepared_anew() = {};
        const Status status = prepare(request.call(), prepared);
        if (failed(status)) return refuse(status);
    }
    prepared.binding.sequence = ++sequence_;
    prepared.binding.is_moved_by_starter = when == Launch::and_move;
    meter_.take(prepared.program->choice.route, prepared.binding);
    const Status status =
        executor_->start(*prepared.program->program, prepared.binding, trace_of(*prepared.program));
    if (status == Status::ok) note_success();
    return status;
}

void Team::note_success()
{
    memory_.end(false);
    meter_.end();
}

// All ranks of the node have agreed on pushes by copy engines, because kernels start late on some rank, or a process has
// no kernel to spare.
void Team::begin_anew(Request& request)
{
    PreparedCall& anew = request.prepared_anew();
    Status status = Status::ok;
    try {
        if (!anew.serves(planner_->drops()))
            status = prepare(request.call(), anew, request.prepared().program);
        if (!failed(status)) {
            anew.binding.sequence = sequence_;
            meter_.take(anew.program->choice.route, anew.binding);
            executor_->start_again(*anew.program->program, anew.binding, trace_of(*anew.program));
        }
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "%s cannot begin anew: %s",
            planner_->name_of(request.call().collective), e.what());
        status = Status::out_of_memory;
    }
    if (failed(status)) executor_->refuse(status);  // the running call fails
}

Status Team::prepare(const Call& call, PreparedCall& prepared, const PreparedProgram* running)
{
    prepared = {};
    const Choice choice = planner_->choose(call);
    if (!call.displacements.empty() &&
        !planner_->takes_displacements(call.collective, choice, call.blocks.empty()))
        return Status::bad_argument;
    Binding& binding = prepared.binding;
    bool needs_bounce = false;
    Status status = memory_.bind(call, choice, binding, needs_bounce);
    if (failed(status)) return status;
    if (running != nullptr) {
        binding.publish = false;
        binding.by_engines = true;
    }
    const ProgramKey key{.collective = call.collective,
                         .bytes = call.bytes,
                         .stride = call.pitch(),
                         .blocks = call.blocks,
                         .in_place = call.in_place,
                         .has_bounce = needs_bounce,
                         .is_on_device = binding.is_on_device(),
                         .publish = binding.publish};
    prepared.program = &(running == nullptr ? planner_->prepare(key, choice)
                                            : planner_->prepare_instead(*running, key, choice));
    if (needs_bounce) status = memory_.bind_bounce(*prepared.program->program, binding);
    if (!failed(status)) status = connect(*prepared.program);
    prepared.drops = planner_->drops();
    prepared.stays = !failed(status) && memory_.stays(call);
    return status;
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

// Launches the first request. One that fails is over, and the next one takes its place: after an error
// all calls that wait end with the same error. ok: no call is left.
Status Team::launch_next()
{
    has_launched_ = true;
    while (!requests_.empty()) {
        const Status status = failed(error()) ? error() : launch(requests_.front(), Launch::now);
        if (status == Status::in_progress) return status;
        requests_.pop(status);
    }
    return Status::ok;
}

// A call that has not been launched hears of it, too.
void Team::interrupt(const std::vector<bool>& is_dead)
{
    if (!requests_.empty() && !has_launched_) (void)launch_next();
    executor_->interrupt(is_dead);
}

Status Team::progress()
{
    if (requests_.empty()) return Status::ok;
    if (!has_launched_) return launch_next();
    const Status status = executor_->progress();
    if (status == Status::in_progress) {
        if (setup_.node->wants_announcements()) begin_anew(requests_.front());
        return status;
    }
    if (tracer_) tracer_->end(status);
    if (!failed(status)) {
        note_success();
    } else {
        memory_.end(true);
        broken_.store(status, std::memory_order_release);
        log(HIER_LOG_ERROR, "%s failed on rank %d of %d: %s; this communicator takes no more",
            planner_->name_of(requests_.front().call().collective), rank_, size(),
            to_string(status));
    }
    requests_.pop(status);
    return launch_next();
}

}  // namespace hier
