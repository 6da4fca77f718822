// SPDX-License-Identifier: BSD-3-Clause
// What a team is made of.
#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "coll/allgather/routing.hpp"
#include "gpu/runtime.hpp"
#include "net/ucx/ucx_config.hpp"
#include "node/node_transport.hpp"
#include "team/placement.hpp"
#include "team/team.hpp"

namespace hier {
namespace {

// What has to be equal on all ranks for their plans to fit together.
struct Agreed {
    std::uint64_t chunk_bytes;
    std::uint64_t eager_bytes;
    std::int32_t ranks_per_node;
    std::int32_t inter;
    std::int32_t intra;
    std::int32_t unused = 0;
};

const char* first_difference(const Agreed& a, const Agreed& b)
{
    if (a.chunk_bytes != b.chunk_bytes) return "coll_hier_chunk_bytes";
    if (a.eager_bytes != b.eager_bytes) return "coll_hier_eager_bytes";
    if (a.ranks_per_node != b.ranks_per_node) return "coll_hier_ranks_per_node";
    if (a.inter != b.inter) return "coll_hier_inter";
    if (a.intra != b.intra) return "coll_hier_intra";
    return nullptr;
}

void compare_settings(const Group& team, const hier_config& config)
{
    const auto all = team.allgather(Agreed{config.chunk_bytes, config.eager_bytes,
                                           config.ranks_per_node, config.inter, config.intra});
    for (std::size_t r = 1; r < all.size(); r++) {
        const char* differs = first_difference(all[0], all[r]);
        if (differs == nullptr) continue;
        const std::string cause = format(
            "%s differs between rank 0 and rank %zu; give all ranks the same value", differs, r);
        // All see it; one tells.
        if (team.rank() == 0) throw SetupError(cause);
        throw KnownFailure(cause);
    }
}

}  // namespace

Team::Team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team)
    : config_(config), name_(bootstrap.name == nullptr ? "team" : bootstrap.name),
      rank_(bootstrap.rank)
{
    compare_settings(team, config);
    const auto records = team.allgather(own_record());
    std::optional<Group> node, rail;
    team.agree("finding groups", [&] {
        topology_ = make_topology(records, config.ranks_per_node);
        node.emplace(bootstrap, topology_.ranks_on(topology_.node_of(rank_)));
        rail.emplace(bootstrap, topology_.ranks_on_rail(topology_.rail_of(rank_)));
    });
    const auto& me = records[static_cast<std::size_t>(rank_)];
    const auto same_host = std::count_if(records.begin(), records.end(), [&](const PeerRecord& r) {
        return r.node_key == me.node_key;
    });
    oversubscribed_ = same_host > me.cpus;

    // Whoever is in the team's step takes part in the one of its node or rail, too.
    team.agree("setting up the node level",
               [&] { node->agree("", [&] { make_node(*node, records); }); });
    if (topology_.nodes() > 1)
        team.agree("setting up the rail level",
                   [&] { rail->agree("", [&] { make_rail(*rail, records); }); });
    executor_ = std::make_unique<Executor>(
        node_.get(), rail_.get(),
        Executor::Limits{
            .timeout = std::chrono::seconds(config.timeout),
            .rail_first = std::chrono::microseconds(oversubscribed_ ? 1000 : 0),
        });
    const TeamRates rates = measure(team, records);
    if (!rates.may_be_eager) config_.eager_bytes = 0;
    max_bytes_ = rates.max_bytes;
    team.agree("finishing the set-up", [&] {
        cost_.emplace(topology_, rates.rates);
        describe(records, rates.text);
        make_tracer(bootstrap);
    });
}

Team::~Team() = default;

void Team::make_node(const Group& node, const std::vector<PeerRecord>& records)
{
    NodeRanks ranks;
    ranks.share_cores = oversubscribed_;
    ranks.numa = memory_node(records[static_cast<std::size_t>(rank_)]);
    for (const int rank : topology_.ranks_on(topology_.node_of(rank_))) {
        const PeerRecord& record = records[static_cast<std::size_t>(rank)];
        ranks.pids.push_back(record.pid);
        ranks.have_devices = ranks.have_devices || record.has_device != 0;
    }
    node_ = make_node_transport(node, ranks, config_.intra);
}

void Team::make_rail(const Group& rail, const std::vector<PeerRecord>& records)
{
    std::vector<NetworkChoice> choices;
    rail.agree("choosing network devices",
               [&] { choices = network_choices(config_, records, topology_, rank_); });
    const int depth = config_.depth > 0 ? config_.depth : AllgatherCost::max_depth;
    rail_ = std::make_unique<Rail>(
        rail, choices, rail_partners(topology_, rank_),
        RailSettings{depth, config_.gpu_direct, gpu::runtime(), config_.progress});
    // (The rank's own affair. 0 stays 0.)
    config_.depth = std::min(config_.depth, max_in_flight(rail_->choice()));
}

TeamRates Team::measure(const Group& team, const std::vector<PeerRecord>& records)
{
    const bool uses_device = records[static_cast<std::size_t>(rank_)].has_device != 0;
    RateRecord own = rail_ ? own_rates(config_, uses_device, rail_->choice(), rail_->network_rate())
                           : own_rates(config_, uses_device, {}, {});
    own.in_order = rail_ && rail_->is_in_order() ? 1 : 0;
    own.lanes = rail_ ? rail_->lanes() : 1;
    own.max_bytes =
        rail_ ? max_registered(rail_->choice()) : std::numeric_limits<std::size_t>::max();
    own.stages = rail_ && !rail_->reaches_devices() ? 1 : 0;
    own.publish = node_->publish_space();
    return team_rates(team.allgather(own), topology_);
}

void Team::describe(const std::vector<PeerRecord>& records, const std::string& rates)
{
    std::string nodes;
    for (int n = 0; n < std::min(topology_.nodes(), 8); n++)
        nodes += (n > 0 ? "," : "") + std::to_string(topology_.ranks_on(n).size());
    if (topology_.nodes() > 8) nodes += ",...";
    description_ =
        format("%d ranks on %d node%s (%s), %d rail%s, %s inside a node", topology_.size(),
               topology_.nodes(), topology_.nodes() > 1 ? "s" : "", nodes.c_str(),
               topology_.rails(), topology_.rails() > 1 ? "s" : "", node_->name());
    if (rail_) description_ += format(", %s between nodes", rail_->name().c_str());
    if (rail_ && !rail_->device_memory().empty()) description_ += ", " + rail_->device_memory();
    const std::string place =
        describe_place(records, topology_, rank_, rail_ ? rail_->choice().devices : "");
    const PeerRecord& self = records[static_cast<std::size_t>(rank_)];
    if (self.gpu.pci >= 0 || numa_node(self) >= 0)
        description_ += format("; rank %d: %s", rank_, place.c_str());
    description_ += "; " + rates;
    if (oversubscribed_) description_ += "; ranks share cores: calls take longer than expected";
    if (max_bytes_ < std::numeric_limits<std::size_t>::max())
        description_ += format("; calls of up to %zu MiB in all, for the limit on locked memory "
                               "(ulimit -l)",
                               max_bytes_ >> 20);
    log(HIER_LOG_DEBUG, "rank %d of %d: %s", rank_, topology_.size(), place.c_str());
}

}  // namespace hier
