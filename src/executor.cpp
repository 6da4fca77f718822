#include "executor.hpp"

#include <algorithm>

#include "log.hpp"

namespace hier {

Status Executor::start(const Program& program, const Binding& binding)
{
    program_ = &program;
    status_ = Status::in_progress;
    failure_ = Status::ok;
    remaining_ = program.size();
    not_ready_ = 0;
    in_flight_ = 0;
    idle_passes_ = 0;
    beat_ = 0;
    late_reported_ = false;
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
        const Status status = t->begin(binding);
        if (failed(status)) fail(status);
    }
    for (std::uint32_t i = 0; i < program.size() && !failed(failure_); i++) {
        if (program.dependencies()[i] == 0) run(i);  // the others when their last dependency ends
    }
    return status_;
}

void Executor::refuse(Status status)
{
    for (Transport* t : transports_) {
        if (t != nullptr) t->raise(status);
    }
}

Status Executor::progress()
{
    if (status_ != Status::in_progress) return status_;
    moved_ = false;
    progress_transports();
    if (!failed(failure_)) {
        poll(Level::rail);
        poll(Level::node);
        issue_rail();
        work_on_node();
    }
    watch_clock();
    conclude();
    return status_;
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
    switch (op.kind) {
    case Op::Kind::announce:
        take(i, transport(op.level)->announce(program_->peer_of(i)));
        break;
    case Op::Kind::drain:
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
    moved_ = true;
    remaining_--;
    for (const std::uint32_t next : program_->successors(i)) {
        if (--pending_[next] == 0) run(next);
    }
}

// Only the first error counts. It was logged where its cause is known.
void Executor::fail(Status status)
{
    if (failed(failure_)) return;
    failure_ = status;
    drain_end_ = Clock::now() + limits_.drain;
    for (Transport* t : transports_) {
        if (t != nullptr) t->raise(status);
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

void Executor::poll(Level level)
{
    const auto channels = program_->channels(level);
    auto& cursors = cursors_[static_cast<std::size_t>(level)];
    for (std::size_t c = 0; c < channels.size() && !failed(failure_); c++) {
        const Program::Channel& channel = channels[c];
        Cursor& cursor = cursors[c];
        while (cursor.ready < channel.readies.size()) {
            const Status status = transport(level)->ready(channel.peer);
            if (failed(status)) return fail(status);
            if (status == Status::in_progress) break;
            not_ready_--;
            finish(channel.readies[cursor.ready++]);
        }
        if (cursor.await == channel.awaits.size()) continue;
        const std::uint32_t arrived = transport(level)->arrived(channel.peer);
        while (cursor.await < channel.awaits.size() &&
               program_->op(channel.awaits[cursor.await]).count <= arrived) {
            finish(channel.awaits[cursor.await++]);
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
            if (in_flight_ >= limits_.depth || failed(failure_)) return;
            const std::uint32_t i = channels[c].puts[next++];
            in_flight_++;
            moved_ = true;
            take(i, transport(Level::rail)->put(transfer(i)));
        }
    }
}

// What the transport does at once, on the CPU, must not keep the rail waiting: hence a budget.
void Executor::work_on_node()
{
    const std::size_t first = node_head_;
    std::size_t done = 0;
    while (node_head_ < node_queue_.size() && done < limits_.bytes_per_pass && !failed(failure_)) {
        const std::uint32_t i = node_queue_[node_head_++];
        const Op& op = program_->op(i);
        Transport* node = transport(Level::node);
        const Status status =
            op.kind == Op::Kind::copy ? node->copy(transfer(i)) : node->put(transfer(i));
        if (status == Status::ok) done += op.slice.length;
        moved_ = true;
        take(i, status);
    }
    if (node_head_ != first) transport(Level::node)->submit();
}

// Often enough that a beat comes some ranks far within the time-out.
static std::chrono::milliseconds beat_period(std::chrono::milliseconds timeout)
{
    constexpr int beats_per_timeout = 8;
    return std::min(std::chrono::milliseconds(1000), timeout / beats_per_timeout);
}

// A rank that has not entered the call may be late for as long as it likes: no time-out then, on no
// rank. Those that miss it say so now and then by a number that grows, and all others hand on the
// highest that they have heard (a Lamport clock): it stands still when nobody is missed.
void Executor::watch_clock()
{
    constexpr unsigned passes_per_look = 64;
    if (moved_) {
        idle_passes_ = 0;
        return;
    }
    if (limits_.timeout.count() == 0 || failed(failure_) || ++idle_passes_ % passes_per_look != 0)
        return;
    const auto now = Clock::now();
    if (idle_passes_ == passes_per_look) last_move_ = last_beat_ = now;
    if (now - last_beat_ >= beat_period(limits_.timeout)) pass_on_beat(now);
    if (now - last_move_ > limits_.timeout) {
        report_stall();
        fail(Status::timed_out);
    } else if (not_ready_ > 0 && !late_reported_ && now - started_ > limits_.timeout) {
        late_reported_ = true;
        report_late();
    }
}

void Executor::pass_on_beat(Clock::time_point now)
{
    last_beat_ = now;
    std::uint32_t highest = beat_;
    for (Transport* t : transports_) {
        if (t != nullptr) highest = std::max(highest, t->heard());
    }
    if (not_ready_ > 0) highest++;
    if (highest == beat_) return;
    beat_ = highest;
    last_move_ = now;
    for (Transport* t : transports_) {
        if (t != nullptr) t->tell(beat_);
    }
}

void Executor::report_late() const
{
    for (const Level level : {Level::node, Level::rail}) {
        const auto channels = program_->channels(level);
        for (std::size_t c = 0; c < channels.size(); c++) {
            if (cursors_[static_cast<std::size_t>(level)][c].ready == channels[c].readies.size())
                continue;
            log(HIER_LOG_ERROR,
                "still waiting: rank %d has not entered the allgather after %lld s "
                "(coll_hier_timeout)",
                channels[c].rank, static_cast<long long>(limits_.timeout.count()));
        }
    }
}

// What is missing, peer by peer: enough to tell a lost peer from a lost connection.
void Executor::report_stall() const
{
    log(HIER_LOG_ERROR,
        "nothing has moved for %lld s (coll_hier_timeout): %u of %u operations left, %d puts in "
        "flight",
        static_cast<long long>(limits_.timeout.count()), remaining_, program_->size(), in_flight_);
    for (const Level level : {Level::node, Level::rail}) {
        const auto channels = program_->channels(level);
        const auto& cursors = cursors_[static_cast<std::size_t>(level)];
        for (std::size_t c = 0; c < channels.size(); c++) {
            const auto& [peer, rank, puts, awaits, readies] = channels[c];
            const bool is_rail = level == Level::rail;
            const std::uint32_t wanted = awaits.empty() ? 0 : program_->op(awaits.back()).count;
            if (cursors[c].await == awaits.size() && (!is_rail || cursors[c].put == puts.size()))
                continue;
            log(HIER_LOG_ERROR,
                "  rank %d over the %s: %u of %u chunks have come, %zu of %zu were sent", rank,
                is_rail ? "rail" : "node", transport(level)->arrived(peer), wanted,
                is_rail ? cursors[c].put : puts.size(), puts.size());
        }
    }
}

void Executor::conclude()
{
    if (failed(failure_)) {
        const bool quiet = std::all_of(std::begin(transports_), std::end(transports_),
                                       [](Transport* t) { return t == nullptr || t->idle(); });
        if (!quiet && Clock::now() < drain_end_) return;
        if (!quiet)
            log(HIER_LOG_ERROR, "transfers are still in flight after a failure: the buffers of "
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
