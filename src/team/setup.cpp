// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "coll/registry.hpp"
#include "gpu/runtime.hpp"
#include "node/node_setup.hpp"
#include "team/introduction.hpp"
#include "team/placement.hpp"
#include "team/rates.hpp"
#include "team/setup.hpp"
#include "team/sound.hpp"
#include "topology/discovery.hpp"

namespace hier {
namespace {

using Records = std::vector<PeerRecord>;

// Do the ranks of this host, with so many threads each, have fewer cores than threads?
bool shares_cores(const Records& records, const PeerRecord& self, int threads = 1)
{
    return std::count_if(records.begin(), records.end(),
                         [&](const PeerRecord& r) { return r.node_key == self.node_key; }) *
               threads >
           self.cpus;
}

// Must some ranks of the node use the same GPU? Several ranks name the same one, and none of them
// sees as many as there are ranks. A rank that has not chosen yet names the runtime's default.
bool share_gpus(std::span<const int> members, const Records& records)
{
    std::set<std::int64_t> named;
    int fewest = std::numeric_limits<int>::max(), most = 0;
    for (const int member : members) {
        const PeerRecord& record = records[static_cast<std::size_t>(member)];
        named.insert(record.gpu.pci);
        fewest = std::min<int>(fewest, record.devices);
        most = std::max<int>(most, record.devices);
    }
    const auto ranks = static_cast<int>(members.size());
    return fewest > 0 && most < ranks && static_cast<int>(named.size()) < ranks;
}

// In turns a kernel would wait for a rank that has none.
bool gain_by_kernels(std::span<const int> members, const Records& records, bool share_gpus,
                     bool gpu_turns)
{
    return members.size() > 1 && members.size() <= gpu::Exchange::max_ranks &&
           !(share_gpus && gpu_turns) &&
           std::all_of(members.begin(), members.end(), [&](int member) {
               return records[static_cast<std::size_t>(member)].has_kernels != 0;
           });
}

// Where each rank has a GPU, chunks go to one peer as quickly by copy engines.
FanOutUse use_of_fan_out(bool has_peers, bool share_gpus, bool is_single)
{
    if (share_gpus) return FanOutUse::all_blocks;
    if (!is_single) return has_peers ? FanOutUse::chunks : FanOutUse::never;
    return has_peers ? FanOutUse::middle_blocks : FanOutUse::blocks_to_one;
}

// On several nodes blocks come from the network too. So published ones would each take copies of
// their own, and no kernels wait for those of other ranks. Kernels that push wait for nobody. Ranks
// that share an H100 under MPS, on two virtual nodes over TCP, us, copy engines / kernels:
//
//                         16 B      64 KiB     256 KiB        4 MiB a rank
//     2 nodes of 2     72 / 62   182 / 169    316 / 303   2942 / 2709    (an H200)
//     2 nodes of 3    116 / 74   211 / 190    629 / 594   2240 / 2317
//     2 nodes of 4    154 / 70   300 / 240    434 / 748   2475 / 2805
//     2 nodes of 8    443 / 82   779 / 301   1942 / 964   6653 / 5071
//
// The 434 us are of chunks of 128 KiB, the 748 of chunks of 32 KiB.
void allow_kernels(NodeRanks& ranks, std::span<const int> members, const Records& records,
                   bool is_single)
{
    const bool shared = share_gpus(members, records);
    const bool gain = gain_by_kernels(members, records, shared, ranks.gpu_turns);
    ranks.share_gpus = is_single && shared;
    ranks.have_kernels = is_single && gain;
    if (gain) ranks.fan_out = use_of_fan_out(members.size() > 2, shared, is_single);
}

// For the cost model, which looks at chunks alone.
std::uint64_t largest_fan_out(const NodeRanks& node, bool is_single)
{
    if (node.processes.size() == 1) return RateRecord::alone;
    if (node.fan_out == FanOutUse::chunks) return max_chunk_by_kernel(node.processes.size() - 1);
    return node.fan_out == FanOutUse::all_blocks && !is_single ? RateRecord::any_size : 0;
}

NodeRanks node_ranks(const Topology& topology, const Records& records, int rank)
{
    NodeRanks ranks;
    ranks.team = topology.size();
    ranks.numa = memory_node(records[static_cast<std::size_t>(rank)]);
    const auto members = topology.ranks_on(topology.node_of(rank));
    std::uint64_t max_by_cpu = topology.nodes() == 1 ? SIZE_MAX : 0;
    for (const int member : members) {
        const PeerRecord& record = records[static_cast<std::size_t>(member)];
        max_by_cpu = std::min(max_by_cpu, record.by_cpu);
        ranks.processes.push_back({record.pid, record.token, record.words});
        ranks.have_devices = ranks.have_devices || record.devices > 0;
        ranks.gpu_turns = ranks.gpu_turns || record.gpu_turns != 0;
        ranks.share_cores = ranks.share_cores || shares_cores(records, record);
    }
    ranks.max_by_cpu = max_by_cpu;
    allow_kernels(ranks, members, records, topology.nodes() == 1);
    return ranks;
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

// Once in a process: it may make communicators by the thousand.
void tell_of_tuning(const std::string& what)
{
    static std::once_flag is_told;
    std::call_once(is_told, [&] {
        log(HIER_LOG_ERROR, "coll_hier_tuning_file: %s: its choices are not used", what.c_str());
    });
}

// nullptr: not all ranks have the file of rank 0, on the machine that it was made for.
const Tuning* agreed_tuning(std::span<const RateRecord> records, int rank)
{
    std::string fault;
    for (std::size_t r = 0; r < records.size() && fault.empty(); r++) {
        if (records[r].is_foreign != 0)
            fault = format("rank %zu is not on a machine of the file", r);
        else if (records[r].tuning != records[0].tuning)
            fault = format("ranks 0 and %zu have different files", r);
    }
    if (fault.empty()) return records[0].tuning != 0 ? loaded_tuning() : nullptr;
    if (rank == 0) tell_of_tuning(fault);
    return nullptr;
}

TeamRates measure(TeamSetup& setup, const Group& team, const PeerRecord& self,
                  const NodeRanks& node)
{
    const Tuning* const file = loaded_tuning();
    const Machine here = this_machine(self.gpu.pci);
    const bool is_own = file != nullptr && file->machine.is_like(here);
    const std::string gpu = here.gpu.empty() ? "" : ", gpu = \"" + here.gpu + "\"";
    log(HIER_LOG_DEBUG, "machine = { cpu = \"%s\", cores = %d%s }", here.cpu.c_str(), here.cores,
        gpu.c_str());
    RateRecord own =
        own_rates(setup.config, self.devices > 0, network_of(setup), is_own ? file : nullptr);
    own.publish = setup.node->publish_space();
    own.host_publish = setup.node->host_publish_space();
    own.small_block = setup.node->max_published(false);
    own.shared_result = setup.node->max_shared_result();
    own.fan_out = largest_fan_out(node, setup.topology.nodes() == 1);
    own.tuning = is_own ? file->digest : 0;
    own.is_foreign = file != nullptr && !is_own ? 1 : 0;
    const auto records = team.collect(own);
    require_sound(team, records, "its rates");
    setup.tuning = agreed_tuning(records, team.rank());
    return team_rates(records, setup.topology,
                      {node.share_gpus, node.gpu_turns, node.have_kernels, node.max_by_cpu});
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

// The groups of a rank, and what it knows of its node before any exchange there.
struct Groups {
    std::optional<Group> node, rail;
    NodeRanks ranks;
};

// Inside a step of the team, but each level is a step of its own group: a rank that fails on one level
// still takes part in the other.
void make_levels(TeamSetup& setup, const Groups& groups, const Records& records, int rank,
                 const MakeNetwork& make_network)
{
    std::exception_ptr failure;
    try {
        setup.node = make_node_transport(*groups.node, groups.ranks, setup.config.intra);
    } catch (const SetupError&) {
        failure = std::current_exception();
    }
    if (setup.topology.nodes() > 1) {
        try {
            groups.rail->agree("setting up the rail level", [&] {
                if (failure) throw KnownFailure("the node level has failed");
                setup.rail = make_rail(setup, *groups.rail, records, rank, make_network);
            });
        } catch (const SetupError&) {
            if (!failure) failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

void set_up_team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
                 const MakeNetwork& make_network, TeamSetup& setup,
                 const std::function<void()>& finish)
{
    const int rank = bootstrap.rank;
    setup.config = config;
    setup.name = bootstrap.name == nullptr ? "team" : bootstrap.name;
    team.require_presence();
    const Records records = introduce(team, config);
    const PeerRecord& self = records[static_cast<std::size_t>(rank)];
    Groups groups;
    // From here to the end of make_levels() no rank fails alone: it would miss in its groups.
    team.agree("finding groups", [&] {
        setup.topology = make_topology(records, config.ranks_per_node);
        const Topology& topology = setup.topology;
        groups.node.emplace(bootstrap, topology.ranks_on(topology.node_of(rank)));
        groups.rail.emplace(bootstrap, topology.ranks_on_rail(topology.rail_of(rank)));
        groups.ranks = node_ranks(topology, records, rank);
        setup.oversubscribed = shares_cores(records, self);
        setup.has_spare_cores = !shares_cores(records, self, 2);
    });
    make_levels(setup, groups, records, rank, make_network);
    // The depth may differ from rank to rank. 0 stays 0.
    setup.config.depth = std::min(setup.config.depth, network_of(setup).max_in_flight);
    const TeamRates rates = measure(setup, team, self, groups.ranks);
    if (!rates.may_be_eager) setup.config.eager_bytes = 0;
    setup.max_bytes = rates.max_bytes;
    if (setup.topology.nodes() == 1) setup.max_skewed = setup.node->max_published(true);
    setup.has_threads = rates.has_threads;
    setup.uses_devices = rates.uses_devices;
    setup.bounces_devices = rates.bounces_devices && setup.topology.nodes() > 1;
    setup.rates = rates.rates;
    setup.rates.shares_cores =
        std::any_of(records.begin(), records.end(),
                    [&](const PeerRecord& r) { return shares_cores(records, r); });
    setup.description = describe(setup, records, rank, rates.text);
    finish();
}

}  // namespace hier
