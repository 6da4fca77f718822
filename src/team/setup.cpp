// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "coll/registry.hpp"
#include "gpu/runtime.hpp"
#include "node/node_transport.hpp"
#include "team/placement.hpp"
#include "team/rates.hpp"
#include "team/setup.hpp"

namespace hier {
namespace {

// Settings that have to be equal on all ranks, so that their plans fit together.
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
    const auto all = team.collect(Agreed{config.chunk_bytes, config.eager_bytes,
                                         config.ranks_per_node, config.inter, config.intra});
    for (std::size_t r = 1; r < all.size(); r++) {
        const char* differs = first_difference(all[0], all[r]);
        if (differs == nullptr) continue;
        const std::string cause = format(
            "%s differs between rank 0 and rank %zu; give all ranks the same value", differs, r);
        // All ranks see the difference. One of them logs it.
        if (team.rank() == 0) throw SetupError(cause);
        throw KnownFailure(cause);
    }
}

using Records = std::vector<PeerRecord>;

std::unique_ptr<NodeTransport> make_node(const TeamSetup& setup, const Group& node,
                                         const Records& records, int rank)
{
    NodeRanks ranks;
    ranks.share_cores = setup.oversubscribed;
    ranks.numa = memory_node(records[static_cast<std::size_t>(rank)]);
    for (const int member : setup.topology.ranks_on(setup.topology.node_of(rank))) {
        const PeerRecord& record = records[static_cast<std::size_t>(member)];
        ranks.pids.push_back(record.pid);
        ranks.have_devices = ranks.have_devices || record.has_device != 0;
    }
    return make_node_transport(node, ranks, setup.config.intra);
}

std::unique_ptr<NetworkTransport> make_rail(const TeamSetup& setup, const Group& rail,
                                            const Records& records, int rank,
                                            const MakeNetwork& make_network)
{
    const hier_config& config = setup.config;
    return make_network({.group = rail,
                         .config = config,
                         .records = records,
                         .topology = setup.topology,
                         .rank = rank,
                         .is_partner = rail_partners(setup.topology, rank),
                         .depth = config.depth > 0 ? config.depth : max_chosen_depth,
                         .gpu = gpu::runtime()});
}

const NetworkTraits& network_of(const TeamSetup& setup)
{
    static const NetworkTraits none;
    return setup.rail ? setup.rail->traits() : none;
}

TeamRates measure(const TeamSetup& setup, const Group& team, const PeerRecord& self)
{
    RateRecord own = own_rates(setup.config, self.has_device != 0, network_of(setup));
    own.publish = setup.node->publish_space();
    return team_rates(team.collect(own), setup.topology);
}

std::string describe(const TeamSetup& setup, const Records& records, int rank,
                     const std::string& rates)
{
    const Topology& topology = setup.topology;
    std::string nodes;
    for (int n = 0; n < std::min(topology.nodes(), 8); n++)
        nodes += (n > 0 ? "," : "") + std::to_string(topology.ranks_on(n).size());
    if (topology.nodes() > 8) nodes += ",...";
    std::string text =
        format("%d ranks on %d node%s (%s), %d rail%s, %s inside a node", topology.size(),
               topology.nodes(), topology.nodes() > 1 ? "s" : "", nodes.c_str(), topology.rails(),
               topology.rails() > 1 ? "s" : "", setup.node->name());
    const NetworkTraits& network = network_of(setup);
    if (setup.rail) text += format(", %s between nodes", network.name.c_str());
    if (!network.device_memory.empty()) text += ", " + network.device_memory;
    const std::string place = describe_place(records, topology, rank, network);
    const PeerRecord& self = records[static_cast<std::size_t>(rank)];
    if (self.gpu.pci >= 0 || numa_node(self) >= 0)
        text += format("; rank %d: %s", rank, place.c_str());
    text += "; " + rates;
    if (setup.oversubscribed) text += "; ranks share cores: calls take longer than expected";
    if (setup.max_bytes < std::numeric_limits<std::size_t>::max())
        text += format("; calls of up to %zu MiB in all, for the limit on locked memory "
                       "(ulimit -l)",
                       setup.max_bytes >> 20);
    log(HIER_LOG_DEBUG, "rank %d of %d: %s", rank, topology.size(), place.c_str());
    return text;
}

bool shares_cores(const Records& records, const PeerRecord& self)
{
    return std::count_if(records.begin(), records.end(), [&](const PeerRecord& r) {
               return r.node_key == self.node_key;
           }) > self.cpus;
}

}  // namespace

void set_up_team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
                 const MakeNetwork& make_network, TeamSetup& setup,
                 const std::function<void()>& finish)
{
    const int rank = bootstrap.rank;
    setup.config = config;
    setup.name = bootstrap.name == nullptr ? "team" : bootstrap.name;
    compare_settings(team, config);
    const auto records = team.collect(own_record());
    const PeerRecord& self = records[static_cast<std::size_t>(rank)];
    std::optional<Group> node, rail;
    team.agree("finding groups", [&] {
        setup.topology = make_topology(records, config.ranks_per_node);
        const Topology& topology = setup.topology;
        node.emplace(bootstrap, topology.ranks_on(topology.node_of(rank)));
        rail.emplace(bootstrap, topology.ranks_on_rail(topology.rail_of(rank)));
    });
    setup.oversubscribed = shares_cores(records, self);

    // Every rank that is in the team's step also takes part in the step of its node or rail.
    team.agree("setting up the node level", [&] {
        node->agree("", [&] { setup.node = make_node(setup, *node, records, rank); });
    });
    if (setup.topology.nodes() > 1)
        team.agree("setting up the rail level", [&] {
            rail->agree("",
                        [&] { setup.rail = make_rail(setup, *rail, records, rank, make_network); });
        });
    // The depth may differ from rank to rank. 0 stays 0.
    setup.config.depth = std::min(setup.config.depth, network_of(setup).max_in_flight);
    const TeamRates rates = measure(setup, team, self);
    if (!rates.may_be_eager) setup.config.eager_bytes = 0;
    setup.max_bytes = rates.max_bytes;
    setup.rates = rates.rates;
    team.agree("finishing the set-up", [&] {
        setup.description = describe(setup, records, rank, rates.text);
        finish();
    });
}

}  // namespace hier
