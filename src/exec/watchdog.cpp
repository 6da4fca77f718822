// SPDX-License-Identifier: BSD-3-Clause
#include "exec/watchdog.hpp"

#include <algorithm>
#include <cstdio>

#include "base/log.hpp"

namespace hier {
namespace {

// A heartbeat passes through several ranks, one after the other, and still has to arrive well
// within the time-out.
std::chrono::milliseconds heartbeat_period(std::chrono::milliseconds timeout)
{
    constexpr int heartbeats_per_timeout = 8;
    return std::min(std::chrono::milliseconds(1000), timeout / heartbeats_per_timeout);
}

}  // namespace

void Watchdog::begin()
{
    idle_passes_ = 0;
    heartbeat_ = 0;
    late_reported_ = false;
    last_move_ = last_heartbeat_ = run_.began;
}

// The clock is read only when passes bring nothing, and then once in many passes.
Status Watchdog::look()
{
    constexpr unsigned passes_per_look = 64;
    if (run_.moved) {
        idle_passes_ = 0;
        return Status::ok;
    }
    if (limits_.timeout.count() == 0 || ++idle_passes_ % passes_per_look != 0) return Status::ok;
    const auto now = Clock::now();
    const auto period = heartbeat_period(limits_.timeout);
    if (idle_passes_ == passes_per_look) last_move_ = last_heartbeat_ = last_look_ = now;
    // A long time between two looks means that this rank did not run, as in a job that is
    // suspended. Nothing could be seen to move, so that time does not count.
    if (now - last_look_ > period) last_move_ += now - last_look_ - period;
    last_look_ = now;
    if (now - last_heartbeat_ >= period) pass_on_heartbeat(now);
    if (now - last_move_ > limits_.timeout) {
        report_stall();
        return Status::timed_out;
    }
    if (run_.not_ready > 0 && !late_reported_ && now - run_.began > limits_.timeout) {
        late_reported_ = true;
        report_late();
    }
    return Status::ok;
}

void Watchdog::pass_on_heartbeat(Clock::time_point now)
{
    last_heartbeat_ = now;
    std::uint32_t highest = heartbeat_;
    for (Transport* t : run_.transports) {
        if (t != nullptr) highest = std::max(highest, t->heard());
    }
    // A heartbeat has 24 bits. So it grows by one in a period, however many ranks miss somebody.
    if (run_.not_ready > 0) highest = std::max(highest, heartbeat_ + 1);
    if (highest == heartbeat_) return;
    heartbeat_ = highest;
    last_move_ = now;
    for (Transport* t : run_.transports) {
        if (t != nullptr) t->tell(heartbeat_);
    }
}

void Watchdog::report_late() const
{
    for (const Level level : {Level::node, Level::rail}) {
        const auto pairs = run_.program->pairs(level);
        for (std::size_t i = 0; i < pairs.size(); i++) {
            if (run_.cursors_of(level)[i].ready == pairs[i].readies.size()) continue;
            log(HIER_LOG_ERROR,
                "still waiting: rank %d has not entered the call after %lld s "
                "(coll_hier_timeout)",
                pairs[i].rank, static_cast<long long>(limits_.timeout.count()));
        }
    }
}

// Peer by peer, so that a reader can tell a lost peer from a lost connection.
void Watchdog::report_stall() const
{
    log(HIER_LOG_ERROR,
        "nothing has moved for %lld s (coll_hier_timeout): %u of %u operations left, %d puts in "
        "flight",
        static_cast<long long>(limits_.timeout.count()), run_.remaining, run_.program->size(),
        run_.in_flight);
    for (const Level level : {Level::node, Level::rail}) {
        for (std::size_t i = 0; i < run_.cursors_of(level).size(); i++) report_peer(level, i);
    }
}

void Watchdog::report_peer(Level level, std::size_t pair) const
{
    const auto& [peer, rank, puts, awaits, readies] = run_.program->pairs(level)[pair];
    const Run::Cursor& cursor = run_.cursors_of(level)[pair];
    const bool is_rail = level == Level::rail;
    if (cursor.await == awaits.size() && (!is_rail || cursor.put == puts.size())) return;
    const std::uint32_t wanted = awaits.empty() ? 0 : run_.program->op(awaits.back()).count;
    char sent[64] = "";
    if (!puts.empty())
        std::snprintf(sent, sizeof sent, ", %zu of %zu were sent",
                      is_rail ? cursor.put : puts.size(), puts.size());
    log(HIER_LOG_ERROR, "  rank %d over the %s: %u of %u chunks have come%s", rank,
        is_rail ? "rail" : "node", std::min(run_.transport(level)->arrived(peer), wanted), wanted,
        sent);
}

}  // namespace hier
