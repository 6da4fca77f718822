#include "executor.hpp"

#include <algorithm>
#include <new>

#include "log.hpp"

namespace hier {

Status Executor::start(const Program& program, const Binding& binding, Trace* trace)
{
    program_ = &program;
    trace_ = trace;
    if (trace_ != nullptr) trace_->begin(program.size());
    status_ = Status::in_progress;
    failure_ = Status::ok;
    remaining_ = program.size();
    not_ready_ = 0;
    in_flight_ = 0;
    idle_passes_ = 0;
    beat_ = 0;
    late_reported_ = false;
    has_stopped_[0] = has_stopped_[1] = false;
    rail_has_started_ = limits_.rail_first.count() == 0 || !program.opens_the_rail();
    started_ = last_move_ = last_beat_ = Clock::now();
    pending_.assign(program.dependencies().begin(), program.dependencies().end());
    node_queue_.clear();
    node_queue_.reserve(program.size());
    node_head_ = 0;
    for (const Level level : {Level::node, Level::rail}) {
        auto& cursors = cursors_[static_cast<std::size_t>(level)];
        cursors.assign(program.channels(level).size(), Cursor{});
        for (const auto& channel : program.channels(level)) {
            not_ready_ += static_cast<std::uint32_t>(channel.readies.size());
        }
    }
    // Every transport begins even when one failed: the peers have to hear of it, and conclude()
    // ends them all.
    for (Transport* t : transports_) {
        if (t == nullptr) continue;
        Status status = Status::out_of_memory;
        try {
            status = t->begin(binding);
        } catch (const std::bad_alloc&) {
            log(HIER_LOG_ERROR, "no memory to begin an allgather");
        }
        if (failed(status)) fail(status);
    }
    try {
        for (std::uint32_t i = 0; i < program.size() && !failed(failure_); i++) {
            if (program.dependencies()[i] == 0) run(i);  // the others when their last one ends
        }
    } catch (const std::bad_alloc&) {  // peers may be writing already
        log(HIER_LOG_ERROR, "no memory for an operation of an allgather");
        fail(Status::out_of_memory);
    }
    return status_;
}

// Without memory for one level's words, the other's are told all the same.
void Executor::raise(Status status)
{
    for (Transport* t : transports_) {
        if (t == nullptr) continue;
        try {
            t->raise(status);
        } catch (const std::bad_alloc&) {
            log(HIER_LOG_ERROR, "no memory to tell all others of a failure");
        }
    }
}

void Executor::refuse(Status status)
{
    raise(status);
    for (Transport* t : transports_) {
        if (t != nullptr) stop(*t);
    }
}

void Executor::stop(Transport& transport)
{
    try {
        transport.stop();
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "no memory to tell all others that nothing is written any more");
    }
}

Status Executor::progress()
{
    if (status_ != Status::in_progress) return status_;
    moved_ = false;
    try {
        advance();
    } catch (const std::bad_alloc&) {  // an operation may be lost, and nothing may count behind it
        if (!failed(failure_)) log(HIER_LOG_ERROR, "no memory to go on with an allgather");
        fail(Status::out_of_memory);
    }
    conclude();
    return status_;
}

void Executor::advance()
{
    progress_transports();
    if (!failed(failure_)) {
        poll(Level::rail);
        poll(Level::node);
        issue_rail();
        work_on_node();
    }
    watch_clock();
}

Transfer Executor::transfer(std::uint32_t i) const
{
    const Op& op = program_->op(i);
    return {program_->peer_of(i), op.slice, op.from, op.to, op.count, i};
}

// An op whose dependencies are all done.
void Executor::run(std::uint32_t i)
{
    const Op& op = program_->op(i);
    if (trace_ != nullptr) trace_->runnable(i);
    switch (op.kind) {
    case Op::Kind::announce:
        started(i);
        take(i, transport(op.level)->announce(program_->peer_of(i)));
        break;
    case Op::Kind::drain:
        started(i);
        take(i, transport(op.level)->drain(program_->peer_of(i), i));
        break;
    case Op::Kind::copy:
        node_queue_.push_back(i);
        break;
    case Op::Kind::put:
        if (op.level == Level::node) node_queue_.push_back(i);
        break;  // rail puts go in the order of their channel: issue_rail
    case Op::Kind::await_ready:
    case Op::Kind::await_data:
        break;  // poll
    }
}

void Executor::started(std::uint32_t i)
{
    if (trace_ != nullptr) trace_->started(i);
}

// What starting an op returned.
void Executor::take(std::uint32_t i, Status status)
{
    if (status != Status::in_progress) complete(i, status);
}

void Executor::complete(std::uint32_t i, Status status)
{
    const Op& op = program_->op(i);
    if (op.kind == Op::Kind::put && op.level == Level::rail) in_flight_--;
    if (failed(status)) return fail(status);
    if (!failed(failure_)) finish(i);  // after an error nothing new is started
}

void Executor::finish(std::uint32_t i)
{
    if (trace_ != nullptr) trace_->ended(i);
    moved_ = true;
    remaining_--;
    for (const std::uint32_t next : program_->successors(i)) {
        if (--pending_[next] == 0) run(next);
    }
}

// Tells the others, and lets what is in flight end. Only the first error counts; it was logged where
// its cause is known.
void Executor::fail(Status status)
{
    if (failed(failure_)) return;
    failure_ = status;
    drain_end_ = Clock::now() + limits_.drain;
    raise(status);
}

void Executor::progress_transports()
{
    for (Transport* t : transports_) {
        if (t == nullptr) continue;
        const Status status = t->progress(*this);
        if (failed(status)) fail(status);
    }
}

// Does anything have to come from there?
bool Executor::is_due(const Program::Channel& channel, const Cursor& cursor)
{
    return cursor.ready < channel.readies.size() || cursor.await < channel.awaits.size();
}

void Executor::poll(Level level)
{
    const auto channels = program_->channels(level);
    auto& cursors = cursors_[static_cast<std::size_t>(level)];
    for (std::size_t c = 0; c < channels.size() && !failed(failure_); c++) {
        const Program::Channel& channel = channels[c];
        Cursor& cursor = cursors[c];
        if (!is_due(channel, cursor)) continue;
        // Before looking what is here: nothing more comes afterwards.
        const bool is_lost = transport(level)->is_lost(channel.peer);
        while (cursor.ready < channel.readies.size()) {
            const Status status = transport(level)->ready(channel.peer);
            if (failed(status)) return fail(status);
            if (status == Status::in_progress) break;
            not_ready_--;
            finish(channel.readies[cursor.ready++]);
        }
        const std::uint32_t arrived = transport(level)->arrived(channel.peer);
        while (cursor.await < channel.awaits.size() &&
               program_->op(channel.awaits[cursor.await]).count <= arrived) {
            finish(channel.awaits[cursor.await++]);
        }
        if (is_lost && is_due(channel, cursor)) {
            log(HIER_LOG_ERROR, "the connection to rank %d is broken", channel.rank);
            return fail(Status::transport_error);
        }
    }
}

void Executor::issue_rail()
{
    const auto channels = program_->channels(Level::rail);
    auto& cursors = cursors_[static_cast<std::size_t>(Level::rail)];
    for (std::size_t c = 0; c < channels.size(); c++) {
        std::size_t& next = cursors[c].put;
        while (next < channels[c].puts.size() && pending_[channels[c].puts[next]] == 0) {
            if (in_flight_ >= program_->depth() || failed(failure_)) return;
            const std::uint32_t i = channels[c].puts[next++];
            in_flight_++;
            moved_ = true;
            rail_has_started_ = true;
            started(i);
            take(i, transport(Level::rail)->put(transfer(i)));
        }
    }
}

bool Executor::may_work_on(const Op& op)
{
    const bool feeds_the_rail = op.kind == Op::Kind::copy && op.to == Place::landing;
    if (!rail_has_started_ && !feeds_the_rail)
        rail_has_started_ = Clock::now() - started_ > limits_.rail_first;
    return rail_has_started_ || feeds_the_rail;
}

// What the transport does at once, on the CPU, must not keep the rail waiting: hence a budget.
void Executor::work_on_node()
{
    const std::size_t first = node_head_;
    std::size_t done = 0;
    while (node_head_ < node_queue_.size() && done < limits_.bytes_per_pass && !failed(failure_)) {
        const std::uint32_t i = node_queue_[node_head_];
        const Op& op = program_->op(i);
        if (!may_work_on(op)) break;
        node_head_++;
        Transport* node = transport(Level::node);
        started(i);
        const Status status =
            op.kind == Op::Kind::copy ? node->copy(transfer(i)) : node->put(transfer(i));
        if (status == Status::ok) done += op.slice.length;
        moved_ = true;
        take(i, status);
    }
    if (node_head_ != first) transport(Level::node)->submit(*this);
}

// A peer writes no more when all that is due from it is here; else it has to say so.
bool Executor::may_be_written(Level level) const
{
    const auto channels = program_->channels(level);
    return std::any_of(channels.begin(), channels.end(), [&](const Program::Channel& c) {
        return !c.awaits.empty() &&
               transport(level)->may_write(c.peer, program_->op(c.awaits.back()).count);
    });
}

// After a failure. Neither level waits for the other to tell its peers.
bool Executor::is_at_rest()
{
    bool all = true;
    for (const Level level : {Level::node, Level::rail}) {
        Transport* t = transport(level);
        if (t == nullptr) continue;
        bool& has_stopped = has_stopped_[static_cast<std::size_t>(level)];
        if (!has_stopped && t->idle()) {
            has_stopped = true;
            stop(*t);
        }
        all = has_stopped && t->idle() && !may_be_written(level) && all;
    }
    return all;
}

void Executor::conclude()
{
    if (failed(failure_)) {
        const bool is_quiet = is_at_rest();
        if (!is_quiet && Clock::now() < drain_end_) return;
        if (!is_quiet)
            log(HIER_LOG_ERROR, "transfers may still be in flight after a failure: the buffers of "
                                "this call are not safe to reuse");
        status_ = failure_;
    } else if (remaining_ == 0) {
        for (Transport* t : transports_) {
            const Status status = t == nullptr ? Status::ok : t->settle();
            if (failed(status)) fail(status);
            if (status != Status::ok) return;
        }
        status_ = Status::ok;
    } else {
        return;
    }
    for (Transport* t : transports_) {
        if (t != nullptr) t->end();
    }
}

}  // namespace hier
