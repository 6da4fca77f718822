// SPDX-License-Identifier: BSD-3-Clause
#include "exec/executor.hpp"

#include <new>

#include "base/log.hpp"

namespace hier {

// All that a run begins with.
void Executor::reset(const Program& program, Trace* trace)
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
    heartbeat_ = 0;
    late_reported_ = false;
    has_stopped_[0] = has_stopped_[1] = false;
    is_dead_.clear();
    rail_has_started_ = limits_.rail_first.count() == 0 || !program.opens_the_rail();
    started_ = last_move_ = last_heartbeat_ = Clock::now();
    pending_.assign(program.dependencies().begin(), program.dependencies().end());
    node_queue_.clear();
    node_queue_.reserve(program.size());
    node_head_ = 0;
    for (const Level level : {Level::node, Level::rail}) {
        auto& cursors = cursors_[static_cast<std::size_t>(level)];
        cursors.assign(program.pairs(level).size(), Cursor{});
        for (const auto& pair : program.pairs(level)) {
            not_ready_ += static_cast<std::uint32_t>(pair.readies.size());
        }
    }
}

Status Executor::start(const Program& program, const Binding& binding, Trace* trace)
{
    reset(program, trace);
    // Every transport begins even when one failed: the peers have to hear of it, and conclude()
    // ends them all.
    for (Transport* t : transports_) {
        if (t == nullptr) continue;
        Status status = Status::out_of_memory;
        try {
            status = t->begin(binding);
        } catch (const std::bad_alloc&) {
            log(HIER_LOG_ERROR, "no memory to begin a collective call");
        }
        if (failed(status)) fail(status);
    }
    try {
        for (std::uint32_t i = 0; i < program.size() && !failed(failure_); i++) {
            if (program.dependencies()[i] == 0) run(i);  // the others when their last one ends
        }
        // The others wait for these, and looking for what they have sent takes time.
        if (binding.publish && !failed(failure_)) issue_rail();
        if (binding.publish && !failed(failure_)) work_on_node();
    } catch (const std::bad_alloc&) {  // peers may be writing already
        log(HIER_LOG_ERROR, "no memory for an operation of a collective call");
        fail(Status::out_of_memory);
    }
    return status_;
}

Status Executor::progress()
{
    if (status_ != Status::in_progress) return status_;
    moved_ = false;
    try {
        advance();
    } catch (const std::bad_alloc&) {  // an operation may be lost, and nothing may count behind it
        if (!failed(failure_)) log(HIER_LOG_ERROR, "no memory to go on with a collective call");
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
    case Op::Kind::enter:
        started(i);
        take(i, transport(op.level)->enter(program_->peer_of(i)));
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
        break;  // rail puts go in the order of their pair: issue_rail
    case Op::Kind::await_announced:
    case Op::Kind::await_entered:
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

void Executor::progress_transports()
{
    for (Transport* t : transports_) {
        if (t == nullptr) continue;
        const Status status = t->progress(*this);
        if (failed(status)) fail(status);
    }
}

// Does anything have to come from there?
bool Executor::is_due(const Program::Pair& pair, const Cursor& cursor)
{
    return cursor.ready < pair.readies.size() || cursor.await < pair.awaits.size();
}

Status Executor::is_in_call(Level level, const Program::Pair& pair, std::uint32_t op) const
{
    Transport& t = *transport(level);
    return program_->op(op).kind == Op::Kind::await_announced ? t.announced(pair.peer)
                                                              : t.entered(pair.peer);
}

void Executor::poll(Level level)
{
    const auto pairs = program_->pairs(level);
    auto& cursors = cursors_[static_cast<std::size_t>(level)];
    for (std::size_t c = 0; c < pairs.size() && !failed(failure_); c++) {
        const Program::Pair& pair = pairs[c];
        Cursor& cursor = cursors[c];
        if (!is_due(pair, cursor)) continue;
        // Before looking what is here: nothing more comes afterwards.
        const bool is_lost = transport(level)->is_lost(pair.peer);
        while (cursor.ready < pair.readies.size()) {
            const Status status = is_in_call(level, pair, pair.readies[cursor.ready]);
            if (failed(status)) return fail(status);
            if (status == Status::in_progress) break;
            not_ready_--;
            finish(pair.readies[cursor.ready++]);
        }
        const std::uint32_t arrived = transport(level)->arrived(pair.peer);
        while (cursor.await < pair.awaits.size() &&
               program_->op(pair.awaits[cursor.await]).count <= arrived) {
            finish(pair.awaits[cursor.await++]);
        }
        if (is_lost && is_due(pair, cursor)) {
            log(HIER_LOG_ERROR, "the connection to rank %d is broken", pair.rank);
            return fail(Status::transport_error);
        }
    }
}

void Executor::issue_rail()
{
    const auto pairs = program_->pairs(Level::rail);
    auto& cursors = cursors_[static_cast<std::size_t>(Level::rail)];
    for (std::size_t c = 0; c < pairs.size(); c++) {
        std::size_t& next = cursors[c].put;
        while (next < pairs[c].puts.size() && pending_[pairs[c].puts[next]] == 0) {
            if (in_flight_ >= program_->depth() || failed(failure_)) return;
            const std::uint32_t i = pairs[c].puts[next++];
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
    const bool feeds_the_rail = op.kind == Op::Kind::copy && op.to == Place::bounce;
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

}  // namespace hier
