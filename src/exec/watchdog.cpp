// SPDX-License-Identifier: BSD-3-Clause
#include "exec/watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

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

long long seconds(std::chrono::steady_clock::duration time)
{
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

void Watchdog::begin()
{
    passes_ = 0;
    has_moved_ = moves_ = is_stalled_ = has_told_ = false;
    heartbeat_ = 0;
    late_reported_ = false;
    lost_ = -1;
    last_move_ = last_heartbeat_ = last_look_ = run_.began;
}

// The clock is read once in many passes, so that it costs nothing. Most calls end before that.
Status Watchdog::look()
{
    constexpr unsigned passes_per_look = 64;
    has_moved_ = has_moved_ || run_.moved;
    if (is_stalled_ && has_moved_) note_movement(Clock::now());
    if (limits_.timeout.count() == 0 || ++passes_ % passes_per_look != 0) return Status::ok;
    const auto now = Clock::now();
    const auto period = heartbeat_period(limits_.timeout);
    // A long time between two looks means that this rank did not run, as in a job that is
    // suspended. Nothing could be seen to move, so that time does not count.
    if (now - last_look_ > period) last_move_ += now - last_look_ - period;
    last_look_ = now;
    if (has_moved_) note_movement(now);
    // What a process has sent before its death is taken in while something moves. It may have sent the
    // last of it after this rank's latest pass. So a rank is lost if two looks, with passes between
    // them, have missed it.
    const int lost = now - last_heartbeat_ >= period && !moves_ ? lost_rank() : -1;
    if (lost >= 0) {
        if (std::exchange(lost_, lost) != lost) return Status::ok;
        log(HIER_LOG_ERROR, "the process of rank %d has ended", lost);
        return Status::peer_failed;
    }
    pass_on_heartbeat(now, period);
    if (now - last_move_ > limits_.timeout) return stall(now);
    if (run_.not_ready > 0 && !late_reported_ && now - run_.began > limits_.timeout) {
        late_reported_ = true;
        report_late();
    }
    return Status::ok;
}

// A rank tells its peers once in a period. But the first number that it hears goes on at once: on a ring
// it passes through all ranks, and must not lose a period in each of them. Those that come behind it follow
// one period apart.
void Watchdog::pass_on_heartbeat(Clock::time_point now, Clock::duration period)
{
    const bool is_over = now - last_heartbeat_ >= period;
    if (has_told_ && now - last_told_ < period) return;
    if (is_over) last_heartbeat_ = now;
    std::uint32_t highest = heartbeat_;
    for (Transport* t : run_.transports) {
        if (t == nullptr) continue;
        highest = std::max(highest, t->heard());
        if (t->have_parts_come()) note_movement(now);
    }
    // A heartbeat has 24 bits. So it grows by one in a period, however many ranks miss somebody.
    if (is_over && (run_.not_ready > 0 || moves_)) highest = std::max(highest, heartbeat_ + 1);
    if (is_over) moves_ = false;
    if (highest == heartbeat_) return;
    heartbeat_ = highest;
    has_told_ = true;
    last_told_ = now;
    sign_of_life(now);
    tell();
}

void Watchdog::tell() const
{
    for (Transport* t : run_.transports) {
        if (t != nullptr) t->tell(heartbeat_);
    }
}

// Only where the dead rank still owes something, or has still to take something: another one may have ended its part.
// -1: no rank.
int Watchdog::lost_rank() const
{
    const auto pairs = run_.program->pairs(Level::node);
    for (std::size_t i = 0; i < pairs.size(); i++) {
        const Run::Cursor& cursor = run_.cursors_of(Level::node)[i];
        Transport& node = *run_.transport(Level::node);
        const bool is_due = cursor.ready < pairs[i].readies.size() ||
                            cursor.await < pairs[i].awaits.size() ||
                            node.has_to_take(pairs[i].peer);
        if (is_due && node.has_ended(pairs[i].peer)) return pairs[i].rank;
    }
    return -1;
}

void Watchdog::note_movement(Clock::time_point now)
{
    has_moved_ = false;
    moves_ = true;
    sign_of_life(now);
}

// Bytes of this rank have moved, or another rank has told that something is going on.
void Watchdog::sign_of_life(Clock::time_point now)
{
    if (is_stalled_)
        log(HIER_LOG_ERROR, "rank %d: the call moves again, after %lld s", limits_.rank,
            seconds(now - last_move_));
    is_stalled_ = false;
    last_move_ = now;
}

// A team whose network stands still would fill the log, so the reports have a distance.
Status Watchdog::stall(Clock::time_point now)
{
    constexpr auto between_reports = std::chrono::minutes(1);
    if (!limits_.fails && last_report_ && now - *last_report_ < between_reports) return Status::ok;
    last_report_ = now;
    is_stalled_ = !limits_.fails;
    report_stall(now);
    if (!limits_.fails) tell();  // a dead peer does not take it
    return limits_.fails ? Status::timed_out : Status::ok;
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
void Watchdog::report_stall(Clock::time_point now) const
{
    constexpr std::size_t max_peers = 16;  // where a network is down, all peers owe something
    log(HIER_LOG_ERROR,
        "rank %d: nothing has moved for %lld s (coll_hier_timeout): %u of %u operations left, %d "
        "puts in flight; %s",
        limits_.rank, seconds(now - last_move_), run_.remaining, run_.program->size(),
        run_.in_flight, limits_.fails ? "the call fails" : "the call goes on");
    std::size_t peers = 0;
    for (const Level level : {Level::node, Level::rail}) {
        for (std::size_t i = 0; i < run_.cursors_of(level).size() && peers < max_peers; i++)
            peers += report_peer(level, i) ? 1 : 0;
    }
    if (peers == max_peers) log(HIER_LOG_ERROR, "  there may be others");
}

// False: neither side owes the other anything.
bool Watchdog::report_peer(Level level, std::size_t pair) const
{
    const auto& [peer, rank, puts, awaits, readies] = run_.program->pairs(level)[pair];
    const auto gone =
        std::count_if(puts.begin(), puts.end(), [&](std::uint32_t op) { return run_.is_done[op]; });
    const bool all_have_gone = gone == static_cast<std::ptrdiff_t>(puts.size());
    const bool has_to_take = run_.transport(level)->has_to_take(peer);
    if (run_.cursors_of(level)[pair].await == awaits.size() && all_have_gone && !has_to_take)
        return false;
    const std::uint32_t wanted = awaits.empty() ? 0 : run_.program->op(awaits.back()).count;
    char sent[64] = "";
    if (!puts.empty())
        std::snprintf(sent, sizeof sent, ", %td of %zu have gone", gone, puts.size());
    log(HIER_LOG_ERROR, "  rank %d over the %s: %u of %u chunks have come%s%s", rank,
        level == Level::rail ? "rail" : "node",
        std::min(run_.transport(level)->arrived(peer), wanted), wanted, sent,
        has_to_take ? ", it has not taken all of ours" : "");
    return true;
}

}  // namespace hier
