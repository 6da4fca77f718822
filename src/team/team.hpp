// SPDX-License-Identifier: BSD-3-Clause
// All that a communicator needs to run collective calls: groups, transports, plans, the executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "coll/common/collective.hpp"
#include "exec/executor.hpp"
#include "exec/tracer.hpp"
#include "hier/call.hpp"
#include "hier/hier.h"
#include "team/call_memory.hpp"
#include "team/call_meter.hpp"
#include "team/call_planner.hpp"
#include "team/request.hpp"
#include "team/setup.hpp"

namespace hier {

// The parts that a team is given.
struct TeamParts {
    std::span<const MakeCollective> collectives;  // by index
    MakeNetwork network;                          // for a team on several nodes
};

// When does a call's first work happen: announcements, and messages that take system calls?
enum class Launch : std::uint8_t {
    and_move,  // now. The caller moves the call on, so that its start may copy large blocks, too.
    now,
    later,  // in progress(). The caller is soon back.
};

// The team's mutex protects all functions but those for any thread.
class Team {
public:
    // Collective over the bootstrap's team. `team` is the group of all its ranks. The caller is
    // inside a step (Group::agree).
    Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
         const TeamParts& parts);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Held around each of the following functions. Two teams work at the same time.
    std::mutex& mutex() { return mutex_; }
    // in_progress: `request` stands for the call. ok: the call is over already, and nobody hears of
    // it. bad_argument: nothing has started. Any other status is the error that has broken the team.
    // With Launch::later such an error shows in the request.
    Status start(Call call, Request*& request, Launch when = Launch::now,
                 const Listener& listener = {});
    // A request for a call that is started again and again, by start(Request&). It lasts as long as the
    // team. ok or bad_argument.
    // `request`: null, or one that prepare() has made; bad_argument while its call runs.
    Status prepare(Call call, Request*& request);
    // As the first start. bad_argument: the call is running.
    Status start(Request& request, Launch when = Launch::now, const Listener& listener = {});
    // A request of prepare() that has been posted (PostBox): as a start with Launch::later.
    void take(Request& request);
    // In place of a start. The others hear that this rank has failed.
    Status refuse(Status status);
    // Between two calls, for a team that has a rail. If a peer on the rail has failed, the peer
    // hears that this rank writes no more.
    void answer_failure();
    // Moves the running call, and begins the next one when it is over. ok: no call is left.
    Status progress();
    // `is_dead`: by rank.
    void interrupt(const std::vector<bool>& is_dead);
    bool moved() const { return executor_->moved(); }
    bool is_running() const { return !requests_.empty(); }

    // From any thread.
    Status error() const { return broken_.load(std::memory_order_acquire); }
    bool bounces_devices() const { return setup_.bounces_devices; }
    bool takes_device_memory() const { return setup_.node->takes_device_memory(); }
    // This host has more ranks than cores: a rank that waits should let others run.
    bool oversubscribed() const { return setup_.oversubscribed; }
    bool has_spare_cores() const { return setup_.has_spare_cores; }
    int size() const { return setup_.topology.size(); }
    bool has_rail() const { return setup_.rail != nullptr; }
    // The seconds that the network needs at least for blocks of so many bytes. 0 on a single node.
    double network_time(std::size_t bytes) const;
    const std::string& description() const { return setup_.description; }
    // Bytes of all ranks together below which the fallback module is expected to be faster.
    std::size_t min_bytes(std::size_t collective) const { return planner_->min_bytes(collective); }
    std::size_t part_bytes(std::size_t collective, std::size_t bytes) const
    {
        return planner_->part_bytes(collective, bytes);
    }
    // May a call of so many bytes a block have Call::displacements?
    bool takes_displacements(std::size_t collective, std::size_t bytes, bool are_equal) const
    {
        return planner_->takes_displacements(collective, bytes, are_equal);
    }
    std::size_t max_bytes() const { return setup_.max_bytes; }

private:
    bool takes(const Call& call) const;
    Status enqueue(Request& request, Launch when, const Listener& listener);
    Status launch(Request& request, Launch when);
    Status launch_next();
    Status begin(Request& request, Launch when);
    void begin_anew(Request& request);
    // `running`: the call begins anew in place of this program. It announces, and no kernel pushes its blocks.
    Status prepare(const Call& call, PreparedCall& prepared,
                   const PreparedProgram* running = nullptr);
    Status connect(PreparedProgram& prepared);
    Trace* trace_of(const PreparedProgram& prepared);
    void note_success();

    // In one cache line, without the list of all requests: one thread may start a call, and another one end it.
    alignas(cache_line) std::mutex mutex_;

public:
    bool is_listed = false;  // with the teams that the progress engine moves

private:
    bool has_launched_ = false;               // the first request
    std::atomic<Status> broken_{Status::ok};  // the error of an earlier call
    RequestQueue requests_;
    TeamSetup setup_;
    int rank_;
    CallMeter meter_;
    std::unique_ptr<Executor> executor_;
    std::unique_ptr<CallPlanner> planner_;
    CallMemory memory_;
    std::unique_ptr<Tracer> tracer_;  // none: no call is traced
    std::uint64_t sequence_ = 0;
};

}  // namespace hier
