// SPDX-License-Identifier: BSD-3-Clause
// All that a communicator needs to run collectives: groups, transports, plans, the executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "exec/executor.hpp"
#include "exec/program.hpp"
#include "exec/tracer.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "memory/host_memory.hpp"
#include "net/rail.hpp"
#include "team/group.hpp"
#include "team/rates.hpp"

namespace hier {

class NodeTransport;

class Team {
public:
    // Collective over the bootstrap's team, of which `team` is the group, in a step of whose it is made.
    Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team);
    ~Team();

    // Under the progress engine's lock, all of these.
    Status start(const hier_allgather_args& args);
    // In place of a start: the others hear that this rank has failed.
    Status refuse(Status status);
    // Between two collectives, of a team that has a rail: a peer there that has failed hears that this
    // rank writes no more.
    void answer_failure();
    Status progress();
    // `is_dead`: by rank.
    void interrupt(const std::vector<bool>& is_dead) { executor_->interrupt(is_dead); }
    bool moved() const { return executor_->moved(); }

    // From any thread.
    Status status() const { return status_.load(std::memory_order_acquire); }
    bool takes_device_memory() const;
    // More ranks on this host than cores: who waits should let others run.
    bool oversubscribed() const { return oversubscribed_; }
    int size() const { return topology_.size(); }
    bool has_rail() const { return rail_ != nullptr; }
    const std::string& description() const { return description_; }
    // Of all ranks together, below which the caller's other ways are expected to be faster.
    std::size_t min_bytes() const;
    std::size_t max_bytes() const { return max_bytes_; }
    Status error() const { return broken_.load(std::memory_order_acquire); }

private:
    // What a program is made for.
    struct Call {
        std::size_t bytes_per_rank;
        bool in_place;
        bool has_bounce;
        bool is_on_device;  // either buffer
        bool operator==(const Call&) const = default;
    };
    struct Prepared {
        Call call;
        std::uint64_t used;  // sequence number of the last use
        AllgatherChoice choice;
        std::unique_ptr<Program> program;
    };

    void make_node(const Group& node, const std::vector<PeerRecord>& records);
    void make_rail(const Group& rail, const std::vector<PeerRecord>& records);
    TeamRates measure(const Group& team, const std::vector<PeerRecord>& records);
    void describe(const std::vector<PeerRecord>& records, const std::string& rates);
    void make_tracer(const hier_bootstrap& bootstrap);
    AllgatherConstraints constraints(std::size_t bytes_per_rank) const;
    // That of a call whose program is still there, if there is one.
    AllgatherChoice choose(std::size_t bytes_per_rank) const;
    void report(const Call& call, const AllgatherChoice& choice);
    const Prepared& prepare(const Call& call, const AllgatherChoice& choice);
    Trace* trace_of(const Prepared& prepared);
    Status inspect(const hier_allgather_args& args, Binding& binding) const;
    Status reserve_bounce(Binding& binding);

    hier_config config_;
    std::string name_;
    int rank_;
    Topology topology_;
    bool oversubscribed_ = false;
    std::unique_ptr<NodeTransport> node_;
    std::unique_ptr<Rail> rail_;
    std::unique_ptr<Executor> executor_;
    std::optional<AllgatherCost> cost_;
    std::vector<Prepared> prepared_;
    std::unique_ptr<Tracer> tracer_;  // none: no call is traced
    std::shared_ptr<HostMemory> bounce_;
    std::uint64_t sequence_ = 0;
    std::size_t max_bytes_ = 0;               // of all ranks together
    std::atomic<Status> broken_{Status::ok};  // the error of an earlier collective
    std::atomic<Status> status_{Status::ok};
    std::string description_;
    std::set<std::tuple<std::size_t, bool, bool>> told_;  // bytes, bounce buffer, device memory
};

}  // namespace hier
