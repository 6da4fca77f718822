// The running collectives of the process, moved from one place.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "hier/status.hpp"

namespace hier {

class Team;
}
struct hier_allgather_args;

namespace hier {

class Engine {
public:
    static Engine& instance();

    Status start(Team& team, const ::hier_allgather_args& args);
    void refuse(Team& team);
    // How many teams moved. Returns at once when another thread is at it.
    int progress();
    // The team is going away.
    void forget(Team& team);

private:
    bool is_time_to_turn();

    std::mutex mutex_;
    std::vector<Team*> running_;
    std::atomic<std::size_t> count_{0};
    std::atomic<unsigned> idle_calls_{0};
};

}  // namespace hier
