// SPDX-License-Identifier: BSD-3-Clause
#include "api/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "net/ucx/retired_rails.hpp"
#include "net/ucx/ucx_worker.hpp"
#include "team/team.hpp"

namespace hier {

Engine& Engine::instance()
{
    static Engine engine;
    return engine;
}

void Engine::add(Team& team)
{
    if (!team.has_rail()) return;  // inside a node nobody waits for who is not in the call
    const std::lock_guard lock(mutex_);
    answering_.push_back(&team);
}

Status Engine::start(Team& team, const hier_allgather_args& args)
{
    const std::lock_guard lock(mutex_);
    Status status = Status::ok;
    try {
        running_.reserve(running_.size() + 1);
        status = team.start(args);
    } catch (const std::exception& e) {  // the others would wait for us
        log(HIER_LOG_ERROR, "an allgather cannot be started: %s", e.what());
        status = team.refuse(Status::out_of_memory);
    }
    if (status == Status::in_progress) {
        running_.push_back(&team);
        count_ = running_.size();
    }
    return status;
}

void Engine::refuse(Team& team)
{
    const std::lock_guard lock(mutex_);
    (void)team.refuse(Status::transport_error);
}

void Engine::interrupt(Team& team, const std::vector<bool>& is_dead)
{
    const std::lock_guard lock(mutex_);
    team.interrupt(is_dead);
}

int Engine::progress()
{
    if (count_.load(std::memory_order_relaxed) == 0) {
        if (is_time_to_turn()) {
            UcxWorker::turn_all();
            sweep_retired_rails();
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
    // A call on one node turns no worker, even if each of its turns moves something; but peers of
    // another communicator may wait for an answer (over TCP, UCX 1.18 completes a put only when its
    // target has answered).
    if (is_time_to_turn()) {
        UcxWorker::turn_all();
        answer_failures();
    }
    if (moved == 0 && should_yield) sched_yield();
    return moved;
}

// A failed call returns when nobody can write into its buffers any more, and over a network a rank that
// is not in the call can only say so itself. Some teams at a time: there may be thousands.
void Engine::answer_failures()
{
    constexpr std::size_t at_once = 8;
    if (UcxWorker::is_quiet()) return;
    for (std::size_t i = std::min(at_once, answering_.size()); i > 0; i--) {
        next_answer_ = (next_answer_ + 1) % answering_.size();
        answering_[next_answer_]->answer_failure();
    }
}

bool Engine::is_time_to_turn()
{
    // (A turn costs some 300 ns once there are connections.)
    constexpr unsigned idle_calls_per_turn = 64;
    return idle_calls_.fetch_add(1, std::memory_order_relaxed) % idle_calls_per_turn == 0;
}

void Engine::forget(Team& team)
{
    const std::lock_guard lock(mutex_);
    std::erase(answering_, &team);
    std::erase(running_, &team);
    count_ = running_.size();
}

}  // namespace hier
