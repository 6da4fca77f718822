// SPDX-License-Identifier: BSD-3-Clause
// The end of a call: all is done, or something has failed, and then nobody may go on reading or writing.
#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "exec/executor.hpp"

namespace hier {

// Tells the others, and lets what is in flight end. Only the first error counts; it was logged where
// its cause is known.
void Executor::fail(Status status)
{
    if (failed(failure_)) return;
    failure_ = status;
    drain_end_ = Clock::now() + limits_.drain;
    raise(status);
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

void Executor::interrupt(const std::vector<bool>& is_dead)
{
    if (status_ != Status::in_progress) return;
    fail(Status::peer_failed);
    is_dead_ = is_dead;
}

void Executor::stop(Transport& transport)
{
    try {
        transport.stop();
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "no memory to tell all others that nothing is written any more");
    }
}

// A peer writes no more when all that is due from it is here; else it has to say so. (What a dead one
// has sent over a network may still be on its way.)
bool Executor::may_be_written(Level level) const
{
    const auto has_ended = [&](int rank) {
        return level == Level::node && !is_dead_.empty() &&
               is_dead_[static_cast<std::size_t>(rank)];
    };
    const auto pairs = program_->pairs(level);
    return std::any_of(pairs.begin(), pairs.end(), [&](const Program::Pair& c) {
        return !c.awaits.empty() && !has_ended(c.rank) &&
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
