// All that a communicator needs to run collectives: groups, transports, plans, the executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor.hpp"
#include "group.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "memory/pinned.hpp"
#include "program.hpp"
#include "tracer.hpp"
#include "transport/retired_rails.hpp"

namespace hier {

class NodeTransport;

class Team {
public:
    // Collective over the bootstrap's team. Throws on all ranks or on none.
    Team(const hier_config& config, const hier_bootstrap& bootstrap);
    ~Team();

    // Under the engine's lock, all of these.
    Status start(const hier_allgather_args& args);
    // In place of a start: the others hear that this rank has failed.
    Status refuse(Status status);
    Status progress();
    bool moved() const { return executor_->moved(); }

    // From any thread.
    Status status() const { return status_.load(std::memory_order_acquire); }
    bool takes_device_memory() const;
    // More ranks on this host than cores: who waits should let others run.
    bool oversubscribed() const { return oversubscribed_; }
    const std::string& description() const { return description_; }

private:
    // What a program is made for.
    struct Call {
        std::size_t bytes_per_rank;
        bool in_place;
        bool has_landing;
        bool operator==(const Call&) const = default;
    };
    struct Prepared {
        Call call;
        std::uint64_t used;  // sequence number of the last use
        std::unique_ptr<Program> program;
    };

    void make_node(const Group& node, const std::vector<PeerRecord>& records);
    void make_rail(const Group& rail, const std::vector<PeerRecord>& records);
    void describe(const std::vector<PeerRecord>& records);
    void make_tracer(const hier_bootstrap& bootstrap);
    Route route() const;
    const Program& program(const Call& call);
    Trace* trace_of(const Call& call, const Program& program);
    Status inspect(const hier_allgather_args& args, Binding& binding) const;
    Status reserve_landing(Binding& binding);

    hier_config config_;
    int rank_;
    Topology topology_;
    bool oversubscribed_ = false;
    std::unique_ptr<NodeTransport> node_;
    RailPointer rail_;
    std::unique_ptr<Executor> executor_;
    std::vector<Prepared> prepared_;
    std::unique_ptr<Tracer> tracer_;  // none: no call is traced
    std::shared_ptr<PinnedMemory> landing_;
    std::uint64_t sequence_ = 0;
    Status broken_ = Status::ok;  // the error of an earlier collective
    std::atomic<Status> status_{Status::ok};
    std::string description_;
};

// Bytes of one put for shards of this size: small enough to overlap the levels, large enough to be
// worth a put; the same on all ranks.
std::size_t chunk_for(std::size_t bytes_per_rank, const Topology& topology, std::size_t most);

}  // namespace hier
