// SPDX-License-Identifier: BSD-3-Clause
// The executor's watch: a call that stands still ends, one that waits for a late rank does not.
#include <algorithm>
#include <cstdio>

#include "base/log.hpp"
#include "exec/executor.hpp"

namespace hier {

// Often enough that a heartbeat comes some ranks far within the time-out.
static std::chrono::milliseconds heartbeat_period(std::chrono::milliseconds timeout)
{
    constexpr int heartbeats_per_timeout = 8;
    return std::min(std::chrono::milliseconds(1000), timeout / heartbeats_per_timeout);
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
    const auto period = heartbeat_period(limits_.timeout);
    if (idle_passes_ == passes_per_look) last_move_ = last_heartbeat_ = last_look_ = now;
    // Who has not looked for long did not run, as in a job that is suspended: nothing could be seen to
    // move.
    if (now - last_look_ > period) last_move_ += now - last_look_ - period;
    last_look_ = now;
    if (now - last_heartbeat_ >= period) pass_on_heartbeat(now);
    if (now - last_move_ > limits_.timeout) {
        report_stall();
        fail(Status::timed_out);
    } else if (not_ready_ > 0 && !late_reported_ && now - started_ > limits_.timeout) {
        late_reported_ = true;
        report_late();
    }
}

void Executor::pass_on_heartbeat(Clock::time_point now)
{
    last_heartbeat_ = now;
    std::uint32_t highest = heartbeat_;
    for (Transport* t : transports_) {
        if (t != nullptr) highest = std::max(highest, t->heard());
    }
    // By one a period at most, however many ranks miss somebody: it has 24 bits.
    if (not_ready_ > 0) highest = std::max(highest, heartbeat_ + 1);
    if (highest == heartbeat_) return;
    heartbeat_ = highest;
    last_move_ = now;
    for (Transport* t : transports_) {
        if (t != nullptr) t->tell(heartbeat_);
    }
}

void Executor::report_late() const
{
    for (const Level level : {Level::node, Level::rail}) {
        const auto pairs = program_->pairs(level);
        for (std::size_t c = 0; c < pairs.size(); c++) {
            if (cursors_[static_cast<std::size_t>(level)][c].ready == pairs[c].readies.size())
                continue;
            log(HIER_LOG_ERROR,
                "still waiting: rank %d has not entered the call after %lld s "
                "(coll_hier_timeout)",
                pairs[c].rank, static_cast<long long>(limits_.timeout.count()));
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
        const auto pairs = program_->pairs(level);
        const auto& cursors = cursors_[static_cast<std::size_t>(level)];
        for (std::size_t c = 0; c < pairs.size(); c++) {
            const auto& [peer, rank, puts, awaits, readies] = pairs[c];
            const bool is_rail = level == Level::rail;
            const std::uint32_t wanted = awaits.empty() ? 0 : program_->op(awaits.back()).count;
            if (cursors[c].await == awaits.size() && (!is_rail || cursors[c].put == puts.size()))
                continue;
            char sent[64] = "";
            if (!puts.empty())
                std::snprintf(sent, sizeof sent, ", %zu of %zu were sent",
                              is_rail ? cursors[c].put : puts.size(), puts.size());
            log(HIER_LOG_ERROR, "  rank %d over the %s: %u of %u chunks have come%s", rank,
                is_rail ? "rail" : "node", std::min(transport(level)->arrived(peer), wanted),
                wanted, sent);
        }
    }
}

}  // namespace hier
