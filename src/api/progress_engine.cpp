// SPDX-License-Identifier: BSD-3-Clause
#include "api/progress_engine.hpp"

#include <sched.h>

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "net/network.hpp"
#include "team/team.hpp"

namespace hier {

ProgressEngine& ProgressEngine::instance()
{
    static ProgressEngine engine;
    return engine;
}

void ProgressEngine::add(Team& team)
{
    if (!team.has_rail()) return;  // inside a node nobody waits for who is not in the call
    const std::lock_guard lock(mutex_);
    answering_.push_back(&team);
}

Status ProgressEngine::start(Team& team, const Call& call, Request*& request)
{
    const std::lock_guard lock(mutex_);
    Status status = Status::ok;
    try {
        running_.reserve(running_.size() + 1);
        status = team.start(call, request);
    } catch (const std::exception& e) {  // the others would wait for this rank
        log(HIER_LOG_ERROR, "a collective call cannot be started: %s", e.what());
        status = team.refuse(Status::out_of_memory);
    }
    const bool is_known = std::find(running_.begin(), running_.end(), &team) != running_.end();
    if (status == Status::in_progress && !is_known) {
        running_.push_back(&team);
        count_ = running_.size();
    }
    return status;
}

void ProgressEngine::refuse(Team& team)
{
    const std::lock_guard lock(mutex_);
    (void)team.refuse(Status::transport_error);
}

void ProgressEngine::interrupt(Team& team, const std::vector<bool>& is_dead)
{
    const std::lock_guard lock(mutex_);
    team.interrupt(is_dead);
}

int ProgressEngine::progress()
{
    if (count_.load(std::memory_order_relaxed) == 0) {
        if (is_time_for_idle_progress()) {
            progress_networks();
            sweep_networks();
            const std::unique_lock lock(mutex_, std::try_to_lock);
            if (lock.owns_lock()) answer_failures();
        }
        return 0;
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return 0;
    int moved = 0;
    bool should_yield = false;
    for (std::size_t i = 0; i < running_.size();) {
        Team& team = *running_[i];
        const Status status = team.progress();
        moved += team.moved() ? 1 : 0;
        should_yield = should_yield || team.oversubscribed();
        if (status == Status::in_progress) {
            i++;
        } else {
            running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    count_ = running_.size();
    // A call on one node progresses no worker, even if each of its passes moves something; but peers of
    // another communicator may wait for an answer (over TCP, UCX 1.18 completes a put only when its
    // target has answered).
    if (is_time_for_idle_progress()) {
        progress_networks();
        answer_failures();
    }
    if (moved == 0 && should_yield) sched_yield();
    return moved;
}

// A failed call returns when nobody can write into its buffers any more, and over a network a rank that
// is not in the call can only say so itself. Some teams at a time: there may be thousands.
void ProgressEngine::answer_failures()
{
    constexpr std::size_t at_once = 8;
    if (networks_are_quiet()) return;
    for (std::size_t i = std::min(at_once, answering_.size()); i > 0; i--) {
        next_answer_ = (next_answer_ + 1) % answering_.size();
        answering_[next_answer_]->answer_failure();
    }
}

bool ProgressEngine::is_time_for_idle_progress()
{
    // (A pass costs some 300 ns once there are connections.)
    constexpr unsigned idle_calls_per_pass = 64;
    return idle_calls_.fetch_add(1, std::memory_order_relaxed) % idle_calls_per_pass == 0;
}

void ProgressEngine::forget(Team& team)
{
    const std::lock_guard lock(mutex_);
    std::erase(answering_, &team);
    std::erase(running_, &team);
    count_ = running_.size();
}

}  // namespace hier
