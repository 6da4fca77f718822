// SPDX-License-Identifier: BSD-3-Clause
#include "exec/executor.hpp"

#include <new>

#include "base/log.hpp"

namespace hier {
namespace {

// Does anything have to come from this peer?
bool is_due(const Program::Pair& pair, const Run::Cursor& cursor)
{
    return cursor.ready < pair.readies.size() || cursor.await < pair.awaits.size();
}

Status is_in_call(Transport& transport, int peer, Op::Kind awaited)
{
    return awaited == Op::Kind::await_announced ? transport.announced(peer)
                                                : transport.entered(peer);
}

}  // namespace

void Executor::reset(const Program& program, Trace* trace)
{
    trace_ = trace;
    status_ = Status::in_progress;
    run_.begin(program);
    rail_has_started_ = limits_.rail_first.count() == 0 || !program.opens_the_rail();
    pending_.assign(program.dependencies().begin(), program.dependencies().end());
    node_queue_.clear();
    node_queue_.reserve(program.size());
    node_head_ = 0;
}

// Calls inside a node that are small, or in which two ranks lend blocks. The bookkeeping of single operations would
// take as long as much of the call, so a call whose blocks come at once has none. In any other case, errors among
// them, the call begins anew, with all of it.
Status Executor::exchange(const Program& program, const Binding& binding)
{
    const NodeExchange* whole = binding.publish ? program.exchange() : nullptr;
    Transport* const node = run_.transport(Level::node);
    return whole == nullptr || run_.transport(Level::rail) != nullptr
               ? Status::in_progress
               : node->exchange(binding, *whole, limits_.exchange_looks);
}

Status Executor::start(const Program& program, const Binding& binding, Trace* trace)
{
    if (trace == nullptr && exchange(program, binding) == Status::ok) {
        run_.moved = true;
        return status_ = Status::ok;
    }
    failure_.begin();
    if (trace != nullptr) trace->begin(program.size());
    reset(program, trace);
    watchdog_.begin();
    begin(binding);
    return status_;
}

void Executor::start_again(const Program& program, const Binding& binding, Trace* trace)
{
    if (trace != nullptr) trace->begin_anew(program.size());
    reset(program, trace);
    end();
    begin(binding);
}

// Every transport begins, even when one has failed: the peers have to hear of the failure, and
// conclude() ends all transports.
void Executor::begin(const Binding& binding)
{
    for (Transport* t : run_.transports) {
        if (t == nullptr) continue;
        Status status = Status::out_of_memory;
        try {
            status = t->begin(binding);
        } catch (const std::bad_alloc&) {
            log(HIER_LOG_ERROR, "no memory to begin a collective call");
        }
        if (failed(status)) failure_.raise(status);
    }
    try {
        for (const std::uint32_t i : run_.program->first_ops()) {  // finish() runs the others
            if (failure_.is_raised()) break;
            run(i);
        }
        // The other ranks wait for these puts, and a look at what they have sent takes time.
        const bool needs_no_answer = binding.publish || binding.eager;
        if (needs_no_answer && !failure_.is_raised()) issue_rail();
        if (needs_no_answer && !failure_.is_raised()) work_on_node();
    } catch (const std::bad_alloc&) {  // peers may be writing already
        log(HIER_LOG_ERROR, "no memory for an operation of a collective call");
        failure_.raise(Status::out_of_memory);
    }
}

void Executor::end()
{
    for (Transport* t : run_.transports) {
        if (t != nullptr) t->end();
    }
}

Status Executor::progress()
{
    if (status_ != Status::in_progress) return status_;
    run_.moved = false;
    try {
        advance();
    } catch (const std::bad_alloc&) {  // an op may be lost, so no later one may count
        if (!failure_.is_raised()) log(HIER_LOG_ERROR, "no memory to go on with a collective call");
        failure_.raise(Status::out_of_memory);
    }
    conclude();
    return status_;
}

void Executor::advance()
{
    progress_transports();
    if (failure_.is_raised()) return;
    poll(Level::rail);
    poll(Level::node);
    issue_rail();
    work_on_node();
    if (failure_.is_raised()) return;
    const Status seen = watchdog_.look();
    if (failed(seen)) failure_.raise(seen);
}

// Starts an op whose dependencies are all done.
void Executor::run(std::uint32_t i)
{
    const Op& op = run_.program->op(i);
    if (trace_ != nullptr) trace_->runnable(i);
    switch (op.kind) {
    case Op::Kind::announce:
        started(i);
        take(i, run_.transport(op.level)->announce(run_.program->peer_of(i)));
        break;
    case Op::Kind::enter:
        started(i);
        take(i, run_.transport(op.level)->enter(run_.program->peer_of(i)));
        break;
    case Op::Kind::drain:
        started(i);
        take(i, run_.transport(op.level)->drain(run_.program->peer_of(i), i));
        break;
    case Op::Kind::copy:
        node_queue_.push_back(i);
        break;
    case Op::Kind::put:
        if (op.level == Level::node) node_queue_.push_back(i);
        break;  // issue_rail() starts rail puts, in the order of their pair
    case Op::Kind::await_announced:
    case Op::Kind::await_entered:
    case Op::Kind::await_data:
        break;  // poll() ends these
    }
}

void Executor::started(std::uint32_t i)
{
    if (trace_ != nullptr) trace_->started(i);
}

// Takes what the start of an op has returned.
void Executor::take(std::uint32_t i, Status status)
{
    if (status != Status::in_progress) complete(i, status);
}

void Executor::complete(std::uint32_t i, Status status)
{
    const Op& op = run_.program->op(i);
    if (op.kind == Op::Kind::put && op.level == Level::rail) run_.in_flight--;
    if (failed(status)) return failure_.raise(status);
    if (!failure_.is_raised()) finish(i);  // after an error nothing new is started
}

void Executor::finish(std::uint32_t i)
{
    if (trace_ != nullptr) trace_->ended(i);
    run_.moved = true;
    run_.remaining--;
    run_.is_done[i] = true;
    for (const std::uint32_t next : run_.program->successors(i)) {
        if (--pending_[next] == 0) run(next);
    }
}

// Ranks that lead no bundle, say, do nothing on the rail. A look at a network costs some system calls,
// and where ranks share cores others wait for the core meanwhile. So such a rank looks seldom, for
// failures and for peers that need an answer.
bool Executor::should_skip(Level level)
{
    constexpr unsigned passes_per_look = 16;
    return level == Level::rail && run_.program->pairs(Level::rail).empty() &&
           ++idle_rail_passes_ % passes_per_look != 0;
}

void Executor::progress_transports()
{
    for (const Level level : {Level::node, Level::rail}) {
        Transport* const t = run_.transport(level);
        if (t == nullptr || should_skip(level)) continue;
        const Status status = t->progress(*this);
        if (failed(status)) failure_.raise(status);
    }
}

void Executor::poll(Level level)
{
    const auto pairs = run_.program->pairs(level);
    auto& cursors = run_.cursors_of(level);
    for (std::size_t p = 0; p < pairs.size() && !failure_.is_raised(); p++) {
        const Program::Pair& pair = pairs[p];
        Run::Cursor& cursor = cursors[p];
        if (!is_due(pair, cursor)) continue;
        // Asked first: after the loss of a connection nothing more comes, so what is here then is
        // all.
        const bool is_lost = run_.transport(level)->is_lost(pair.peer);
        while (cursor.ready < pair.readies.size()) {
            const Op& awaited = run_.program->op(pair.readies[cursor.ready]);
            const Status status = is_in_call(*run_.transport(level), pair.peer, awaited.kind);
            if (failed(status)) return failure_.raise(status);
            if (status == Status::in_progress) break;
            run_.not_ready--;
            finish(pair.readies[cursor.ready++]);
        }
        const std::uint32_t arrived = run_.transport(level)->arrived(pair.peer);
        while (cursor.await < pair.awaits.size() &&
               run_.program->op(pair.awaits[cursor.await]).count <= arrived) {
            finish(pair.awaits[cursor.await++]);
        }
        if (is_lost && is_due(pair, cursor)) {
            log(HIER_LOG_ERROR, "the connection to rank %d is broken", pair.rank);
            return failure_.raise(Status::transport_error);
        }
    }
}

void Executor::issue_rail()
{
    const auto pairs = run_.program->pairs(Level::rail);
    auto& cursors = run_.cursors_of(Level::rail);
    for (std::size_t p = 0; p < pairs.size(); p++) {
        std::size_t& next = cursors[p].put;
        while (next < pairs[p].puts.size() && pending_[pairs[p].puts[next]] == 0) {
            if (run_.in_flight >= run_.program->depth() || failure_.is_raised()) return;
            const std::uint32_t i = pairs[p].puts[next++];
            run_.in_flight++;
            run_.moved = true;
            rail_has_started_ = true;
            started(i);
            take(i, run_.transport(Level::rail)->put(run_.program->transfer(i)));
        }
    }
}

bool Executor::may_work_on(const Op& op)
{
    const bool feeds_the_rail = op.kind == Op::Kind::copy && op.to == Place::bounce;
    if (!rail_has_started_ && !feeds_the_rail)
        rail_has_started_ = Run::Clock::now() - run_.began > limits_.rail_first;
    return rail_has_started_ || feeds_the_rail;
}

// The CPU itself may copy for a transport, and must not keep the rail waiting. So a pass has a
// budget.
void Executor::work_on_node()
{
    const std::size_t first = node_head_;
    std::size_t done = 0;
    while (node_head_ < node_queue_.size() && done < limits_.bytes_per_pass &&
           !failure_.is_raised()) {
        const std::uint32_t i = node_queue_[node_head_];
        const Op& op = run_.program->op(i);
        if (!may_work_on(op)) break;
        node_head_++;
        Transport* node = run_.transport(Level::node);
        started(i);
        const Transfer transfer = run_.program->transfer(i);
        const Status status =
            op.kind == Op::Kind::copy ? node->copy(transfer) : node->put(transfer);
        if (status == Status::ok) done += op.slice.length;
        run_.moved = true;
        take(i, status);
    }
    if (node_head_ != first) run_.transport(Level::node)->submit(*this);
}

void Executor::refuse(Status status)
{
    if (status_ == Status::in_progress)
        failure_.raise(status);
    else
        failure_.refuse(status);
}

void Executor::interrupt(const std::vector<bool>& is_dead)
{
    if (status_ != Status::in_progress) return;
    failure_.raise(Status::peer_failed);
    failure_.note_dead(is_dead);
}

void Executor::conclude()
{
    if (failure_.is_raised()) {
        if (!failure_.has_ended()) return;
        status_ = failure_.status();
    } else {
        if (run_.remaining > 0 || settle() != Status::ok) return;
        status_ = Status::ok;
    }
    end();
}

Status Executor::settle()
{
    for (Transport* t : run_.transports) {
        const Status status = t == nullptr ? Status::ok : t->settle();
        if (failed(status)) failure_.raise(status);
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

}  // namespace hier
