// SPDX-License-Identifier: BSD-3-Clause
#include "api/progress_engine.hpp"

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "base/log.hpp"
#include "net/network.hpp"

namespace hier {

struct ProgressEngine::Pass {
    std::size_t place = 0;  // in the list, of the next team
    int moved = 0;
    bool should_yield = false;
};

ProgressEngine& ProgressEngine::instance()
{
    // Never destroyed: the progress thread may still look at it.
    static auto* const engine = new ProgressEngine;
    return *engine;
}

void ProgressEngine::add(Team& team)
{
    const std::lock_guard lock(lists_lock_);
    running_.reserve(teams_ + 1);
    // Inside a node nobody waits for a rank that is not in the call.
    if (team.has_rail()) answering_.push_back(&team);
    teams_++;
}

void ProgressEngine::forget(Team& team)
{
    {
        const std::lock_guard lock(team.mutex());
        take_posts_of(team);
    }
    {
        const std::lock_guard lock(lists_lock_);
        std::erase(answering_, &team);
        std::erase(running_, &team);
        count_ = running_.size();
        teams_--;
    }
    // No thread finds the team any more. One that has found it before holds its lock.
    const std::lock_guard last(team.mutex());
}

// The others would wait for this rank. The caller has the team's lock.
Status ProgressEngine::refuse_start(Team& team, const std::exception& cause)
{
    log(HIER_LOG_ERROR, "a collective call cannot be started: %s", cause.what());
    return team.refuse(Status::out_of_memory);
}

void ProgressEngine::hand_over(Team& team)
{
    const std::lock_guard lock(team.mutex());
    if (team.is_running()) list(team);
}

// Leaves the posts of teams that other threads are moving.
void ProgressEngine::take_posts()
{
    if (!has_posts()) return;
    posts_.offer([&](Request& request) {
        Team& team = request.team();
        const std::unique_lock lock(team.mutex(), std::try_to_lock);
        if (!lock.owns_lock()) return false;
        team.take(request);
        list(team);
        return true;
    });
}

void ProgressEngine::take_all_posts_of(Team& team)
{
    posts_.offer([&](Request& request) {
        if (&request.team() != &team) return false;
        team.take(request);
        list(team);
        return true;
    });
}

// The caller has the team's lock.
void ProgressEngine::list(Team& team)
{
    if (team.is_listed) return;
    const std::lock_guard lists(lists_lock_);
    team.is_listed = true;
    running_.push_back(&team);
    count_.store(running_.size(), std::memory_order_relaxed);
}

void ProgressEngine::refuse(Team& team)
{
    const std::lock_guard lock(team.mutex());
    take_posts_of(team);
    (void)team.refuse(Status::transport_error);
}

void ProgressEngine::interrupt(Team& team, const std::vector<bool>& is_dead)
{
    const std::lock_guard lock(team.mutex());
    take_posts_of(team);
    team.interrupt(is_dead);
}

int ProgressEngine::progress()
{
    take_posts();
    if (count_.load(std::memory_order_relaxed) == 0) {
        if (is_time_for_networks()) {
            progress_networks();
            sweep_networks();
            answer_failures();
        }
        return 0;
    }
    Pass pass;
    while (Team* team = take_next(pass)) {
        const std::lock_guard lock(team->mutex(), std::adopt_lock);
        pass.moved += move(*team) ? 1 : 0;
    }
    // A call on one node progresses no worker, even if each of its passes moves something; but peers of
    // another communicator may wait for an answer (over TCP, UCX 1.18 completes a put only when its
    // target has answered).
    if (is_time_for_networks()) {
        progress_networks();
        answer_failures();
    }
    if (pass.moved == 0 && pass.should_yield) sched_yield();
    return pass.moved;
}

int ProgressEngine::progress(Team& team)
{
    bool has_moved = false;
    {
        const std::unique_lock lock(team.mutex(), std::try_to_lock);
        if (lock.owns_lock()) {
            take_posts_of(team);
            has_moved = move(team);
        }
    }
    if (!has_moved && team.oversubscribed()) sched_yield();
    return has_moved ? 1 : 0;
}

// The next running team that no other thread is moving, with its lock; null at the end. Teams that come or
// go meanwhile may be left out until the next pass.
Team* ProgressEngine::take_next(Pass& pass)
{
    if (pass.place >= count_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(lists_lock_);
    while (pass.place < running_.size()) {
        Team& team = *running_[pass.place++];
        pass.should_yield = pass.should_yield || team.oversubscribed();
        if (team.mutex().try_lock()) return &team;
    }
    return nullptr;
}

// The team's lock is held until the team is off the list. So a call that is started meanwhile is not lost.
bool ProgressEngine::move(Team& team)
{
    const Status status = team.progress();
    const bool has_moved = team.moved();
    if (status == Status::in_progress || !team.is_listed) return has_moved;
    const std::lock_guard lock(lists_lock_);
    team.is_listed = false;
    std::erase(running_, &team);
    count_.store(running_.size(), std::memory_order_relaxed);
    return has_moved;
}

// A failed call returns when nobody can write into its buffers any more, and over a network a rank that
// is not in the call can only say so itself. Some teams at a time: there may be thousands.
void ProgressEngine::answer_failures()
{
    constexpr std::size_t at_once = 8;
    if (networks_are_quiet()) return;
    for (std::size_t i = 0; i < at_once; i++) {
        Team* const team = take_next_answering();
        if (team == nullptr) continue;
        const std::lock_guard lock(team->mutex(), std::adopt_lock);
        team->answer_failure();
    }
}

// With its lock. Null: there is none, or another thread is at it.
Team* ProgressEngine::take_next_answering()
{
    const std::lock_guard lock(lists_lock_);
    if (answering_.empty()) return nullptr;
    next_answer_ = (next_answer_ + 1) % answering_.size();
    Team& team = *answering_[next_answer_];
    return team.mutex().try_lock() ? &team : nullptr;
}

// A pass over the networks costs some 300 ns once there are connections. No atomic increment, which every pass would pay
// for: if two threads count at once, one is lost.
bool ProgressEngine::is_time_for_networks()
{
    constexpr unsigned share = 16;
    const unsigned now = passes_.load(std::memory_order_relaxed);
    passes_.store(now + 1, std::memory_order_relaxed);
    return now % share == 0;
}

}  // namespace hier
