// SPDX-License-Identifier: BSD-3-Clause
// The running calls of the process, moved from one place.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "hier/call.hpp"

namespace hier {

class Request;
class Team;

class ProgressEngine {
public:
    static ProgressEngine& instance();

    // Until forget(): while the team runs no call, it answers peers that have failed.
    void add(Team& team);
    // As Team::start.
    Status start(Team& team, const Call& call, Request*& request);
    void refuse(Team& team);
    void interrupt(Team& team, const std::vector<bool>& is_dead);
    // How many teams moved. Returns at once when another thread is at it.
    int progress();
    // The team is going away.
    void forget(Team& team);

private:
    bool is_time_for_idle_progress();
    void answer_failures();  // under the lock

    std::mutex mutex_;
    std::vector<Team*> answering_;
    std::size_t next_answer_ = 0;
    std::vector<Team*> running_;
    std::atomic<std::size_t> count_{0};
    std::atomic<unsigned> idle_calls_{0};
};

}  // namespace hier
