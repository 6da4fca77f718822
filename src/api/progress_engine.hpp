// SPDX-License-Identifier: BSD-3-Clause
// The running calls of the process, moved from one place by any thread.
//
//     thread 1                      thread 2
//       list: next team, a            list: next team; a is taken, so b
//       a.progress()                  b.progress()                        both copy at the same time
//
// Each team has a lock of its own, which a thread holds while it works on the team. The lists have
// another one. A thread takes a team from a list with try_lock, and gives up the lists' lock before it
// works on the team. So nobody waits for the lists' lock while somebody else copies. A call whose caller waits for it
// stays off the list, unless the team is there already: threads with a call each would meet at that lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <vector>

#include "base/cache.hpp"
#include "base/spin_lock.hpp"
#include "hier/status.hpp"
#include "team/post_box.hpp"
#include "team/team.hpp"

namespace hier {

class ProgressEngine {
public:
    static ProgressEngine& instance();

    // Until forget(): while the team runs no call, it answers peers that have failed.
    void add(Team& team);
    // `start` is a Team::start, and may throw. `is_waited_for`: the caller moves the team itself, by progress(Team&),
    // until the call is over.
    template <class Start> Status start(Team& team, const Start& start, bool is_waited_for)
    {
        const std::lock_guard lock(team.mutex());
        take_posts_of(team);
        Status status = Status::ok;
        try {
            status = start();
        } catch (const std::exception& e) {
            status = refuse_start(team, e);
        }
        if (status == Status::in_progress && !is_waited_for) list(team);
        return status;
    }
    // The same for a request of Team::prepare(), without any wait: whoever moves all teams next, or this one, gives it
    // to its team.
    void post(Request& request, const Listener& listener) { posts_.post(request, listener); }
    bool has_posts() const { return posts_.has_posts(); }
    // The caller moves the team's running call no more.
    void hand_over(Team& team);
    void refuse(Team& team);
    void interrupt(Team& team, const std::vector<bool>& is_dead);
    // Moves all running teams but those that other threads are moving. Returns how many have moved.
    int progress();
    // The same for one team. A thread that waits for a call spends most of its passes here.
    int progress(Team& team);
    // Does any team run a call? Without a lock.
    bool is_running() const { return count_.load(std::memory_order_relaxed) > 0; }
    // The same, with posts. In this order: who takes the last one lists its team first.
    bool is_busy() const { return has_posts() || is_running(); }
    // The team is going away. Waits for a thread that is moving it.
    void forget(Team& team);

private:
    struct Pass;  // what a pass over the running teams has seen

    Team* take_next(Pass& pass);
    Team* take_next_answering();
    bool move(Team& team);
    Status refuse_start(Team& team, const std::exception& cause);
    void take_posts();
    // The caller has the team's lock. Whatever it starts comes behind the team's posts.
    void take_posts_of(Team& team)
    {
        if (has_posts()) take_all_posts_of(team);
    }
    void take_all_posts_of(Team& team);
    void list(Team& team);
    void answer_failures();
    bool is_time_for_networks();

    PostBox posts_;

    // The size of running_, without the lock. The progress thread looks at it all the time.
    alignas(cache_line) std::atomic<std::size_t> count_{0};
    // Of the next four. A thread that has it waits for nothing.
    alignas(cache_line) SpinLock lists_lock_;
    std::vector<Team*> running_;  // has room for all teams
    std::vector<Team*> answering_;
    std::size_t next_answer_ = 0;
    std::size_t teams_ = 0;
    alignas(cache_line) std::atomic<unsigned> passes_{0};
};

}  // namespace hier
