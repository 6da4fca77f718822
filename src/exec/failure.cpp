// SPDX-License-Identifier: BSD-3-Clause
#include "exec/failure.hpp"

#include <algorithm>
#include <new>

#include "base/log.hpp"

namespace hier {

void Failure::begin()
{
    status_ = Status::ok;
    has_stopped_[0] = has_stopped_[1] = false;
    is_dead_.clear();
}

void Failure::raise(Status status)
{
    if (is_raised()) return;
    status_ = status;
    drain_end_ = Run::Clock::now() + drain_;
    tell_all(status);
}

// If there is no memory to tell the peers of one level, those of the other level are told all the
// same.
void Failure::tell_all(Status status)
{
    for (Transport* t : run_.transports) {
        if (t == nullptr) continue;
        try {
            t->raise(status);
        } catch (const std::bad_alloc&) {
            log(HIER_LOG_ERROR, "no memory to tell all others of a failure");
        }
    }
}

void Failure::refuse(Status status)
{
    tell_all(status);
    for (Transport* t : run_.transports) {
        if (t != nullptr) stop(*t);
    }
}

void Failure::stop(Transport& transport)
{
    try {
        transport.stop();
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "no memory to tell all others that nothing is written any more");
    }
}

// A peer writes no more when all data that is due from it is here. Otherwise the peer has to say
// that it has stopped. Inside a node the writes of a dead process have ended, whoever says that it
// is dead. Over a network they may still be on their way.
bool Failure::may_be_written(Level level) const
{
    const auto has_ended = [&](const Program::Pair& pair) {
        return (level == Level::node && !is_dead_.empty() &&
                is_dead_[static_cast<std::size_t>(pair.rank)]) ||
               run_.transport(level)->has_ended(pair.peer);
    };
    const auto pairs = run_.program->pairs(level);
    return std::any_of(pairs.begin(), pairs.end(), [&](const Program::Pair& pair) {
        return !pair.awaits.empty() &&
               run_.transport(level)->may_write(pair.peer,
                                                run_.program->op(pair.awaits.back()).count) &&
               !has_ended(pair);
    });
}

// Neither level waits for the other to tell its peers.
bool Failure::is_at_rest()
{
    bool all = true;
    for (const Level level : {Level::node, Level::rail}) {
        Transport* t = run_.transport(level);
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

bool Failure::has_ended()
{
    if (is_at_rest()) return true;
    if (Run::Clock::now() < drain_end_) return false;
    log(HIER_LOG_ERROR, "transfers may still be in flight after a failure: the buffers of "
                        "this call are not safe to reuse");
    return true;
}

}  // namespace hier
