// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>

#include "competitors.hpp"
#include "hier/gpu_fan_out.hpp"
#include "net/stripes.hpp"

namespace bench::simulator {

using hier::Route;
using hier::Topology;

Topology make_topology(const std::vector<int>& ranks_of)
{
    std::vector<int> node_of;
    for (std::size_t n = 0; n < ranks_of.size(); n++) {
        node_of.insert(node_of.end(), static_cast<std::size_t>(ranks_of[n]), static_cast<int>(n));
    }
    return Topology(node_of);
}

bool is_even(const std::vector<int>& ranks_of)
{
    return std::all_of(ranks_of.begin(), ranks_of.end(),
                       [&](int ranks) { return ranks == ranks_of[0]; });
}

int lanes_of(const Machine& machine, const std::vector<int>& ranks_of)
{
    constexpr int most = 4;  // coll_hier_nics
    const int ranks = *std::max_element(ranks_of.begin(), ranks_of.end());
    return std::clamp(machine.nics_of(ranks) / ranks, 1, most);
}

hier::Rates rates_of(const Machine& m)
{
    hier::Rates rates;
    rates.nic = m.nic_rate;
    rates.nic_latency = m.nic_latency;
    rates.nics = m.nics;
    rates.lanes = m.lanes;
    rates.link = m.is_host ? m.core_rate : m.link_rate;
    rates.link_latency = m.link_latency;
    rates.copy_issue = m.is_host ? 0 : m.copy_issue;
    rates.streams = m.is_host ? 1 : m.streams;
    rates.fan_out = m.is_host ? 0 : m.fan_out;
    rates.kernel_blocks = static_cast<int>(hier::gpu::FanOut::max_blocks);
    rates.kernel_gap = m.kernel_gap;
    rates.launch = m.is_host ? 0 : m.launch;
    rates.node = m.is_host ? m.memory_rate : 0;
    rates.own = m.is_host ? m.core_rate : m.copy_rate;
    rates.stage = m.stage_rate;
    rates.overhead = m.overhead;
    rates.engines = !m.is_host;
    return rates;
}

hier::Rates small_rates_of(const Machine& m)
{
    hier::Rates rates = rates_of(m);
    rates.message = m.message;
    rates.nic_gap = m.nic_gap;
    if (m.is_host) {
        rates.small_latency = m.small_latency;
        rates.small_bytes = m.small_bytes;
        rates.publish_latency = m.publish_latency;
        rates.publish_space = m.publish_space;
        rates.publish_block = m.publish_block;
    }
    return rates;
}

namespace {

// Refuses a run that would take too much memory: ops with their tables, and events.
void check_memory(double ops)
{
    constexpr double bytes_per_op = 90, most = 6e9;
    if (ops * bytes_per_op > most) {
        throw std::runtime_error("too large to run every rank: about " +
                                 std::to_string(static_cast<long>(ops / 1e6)) +
                                 " million ops; use larger chunks or nodes that are alike");
    }
}

Symmetry symmetry_for(const Options& options, Symmetry wanted)
{
    return options.is_full || !is_even(options.ranks_of()) ? Symmetry::none : wanted;
}

// The machine as this call uses it.
Machine machine_for(const Topology& topology, const Options& options, std::size_t bytes,
                    const hier::Choice& choice)
{
    Machine m = options.machine;
    if (choice.chunk > 0 && !choice.eager) {
        const std::size_t chunks = (bytes + choice.chunk - 1) / choice.chunk;
        const auto lanes = static_cast<std::size_t>(lanes_of(m, options.ranks_of()));
        const std::size_t stripes = std::min(chunks, lanes);
        const std::size_t members = topology.ranks_on_rail(0).size();
        m.stripes = static_cast<int>(stripes);
        m.lanes = static_cast<int>(members < 2 ? 1 : hier::lanes_in_use(members, stripes, lanes));
    }
    m.is_eager = choice.eager;
    if (!choice.eager) m.message = m.nic_gap = 0;
    if (choice.publish) {
        m.link_latency = m.publish_latency;
    } else if (choice.eager && m.is_host && bytes <= m.small_bytes) {
        m.link_latency = m.small_latency;
    }
    return m;
}

double hier_ops(const Topology& topology, std::size_t bytes, std::size_t chunk)
{
    const double ranks = topology.size(), nodes = topology.nodes();
    const double chunks = static_cast<double>((bytes + chunk - 1) / chunk);
    return ranks * nodes * chunks * (ranks / nodes + 1);
}

Outcome run_competitor(const std::string& name, const Topology& topology, const Options& options,
                       std::size_t bytes)
{
    const auto shards = hier::equal_shards(topology.size(), bytes);
    const Task task{topology, shards};
    const std::size_t total = bytes * static_cast<std::size_t>(topology.size());
    constexpr std::size_t min_segment = 128 << 10, max_segments = 512;
    const std::size_t segment = std::max(min_segment, total / max_segments);
    const bool is_doubling = name == "doubling";
    const bool is_power = std::has_single_bit(static_cast<unsigned>(topology.size()));
    const Symmetry symmetry = symmetry_for(options, is_doubling && is_power ? Symmetry::exclusive_or
                                                                            : Symmetry::rotation);
    if (symmetry == Symmetry::none) {
        const double ranks = topology.size();
        check_memory(is_doubling ? ranks * 64 : ranks * ranks * 2);
    }
    return simulate(topology, machine_for(topology, options, bytes, {}), symmetry, [&](int rank) {
        if (is_doubling) {
            return plan_doubling(task, rank);
        }
        return name == "ring" ? plan_flat_ring(task, rank)
                              : plan_single_leader(task, rank, segment);
    });
}

}  // namespace

hier::AllgatherShape shape_of(const Options& options, std::span<const hier::Extent> shards,
                              const hier::Choice& choice)
{
    const bool has_bounce = options.machine.stage_rate > 0 && options.ranks_of().size() > 1;
    return {.shards = shards,
            .chunk = choice.chunk,
            .route = choice.route,
            .in_place = options.is_in_place,
            .bounce = has_bounce,
            .depth = choice.depth,
            .eager = choice.eager,
            .publish = choice.publish,
            .own_whole = choice.own_whole,
            .copy_whole = choice.own_whole};
}

Outcome run_hier(const Topology& topology, const Options& options, std::size_t bytes,
                 const hier::Choice& choice)
{
    const auto shards = hier::equal_shards(topology.size(), bytes);
    const hier::AllgatherShape shape = shape_of(options, shards, choice);
    const Symmetry symmetry = symmetry_for(options, Symmetry::rotation);
    if (symmetry == Symmetry::none) {
        check_memory(hier_ops(topology, bytes, choice.chunk));
    }
    return simulate(topology, machine_for(topology, options, bytes, choice), symmetry,
                    [&](int rank) { return hier::plan_allgather(topology, rank, shape); });
}

std::vector<Result> run_all(const Options& options, std::size_t bytes)
{
    const Topology topology = make_topology(options.ranks_of());
    std::vector<std::optional<Route>> routes;
    switch (options.route) {
    case RouteChoice::both:
        routes = {Route::direct, Route::ring};
        break;
    case RouteChoice::direct:
        routes = {Route::direct};
        break;
    case RouteChoice::ring:
        routes = {Route::ring};
        break;
    case RouteChoice::bundles:
        routes = {Route::bundles};
        break;
    case RouteChoice::best:
        routes = {std::nullopt};
        break;
    }
    Machine machine = options.machine;
    machine.lanes = lanes_of(machine, options.ranks_of());
    const hier::AllgatherCost cost(topology, small_rates_of(machine));
    std::vector<Result> results;
    for (const std::string& name : options.algorithms) {
        if (name != "hier") {
            results.push_back({name, {}, run_competitor(name, topology, options, bytes)});
            continue;
        }
        for (const auto& route : routes) {
            hier::Constraints constraints;
            constraints.route = route;
            constraints.chunk = options.chunk;
            constraints.depth = options.machine.depth;
            constraints.eager_bytes = options.machine.eager_bytes;
            const auto choice = cost.choose(bytes, constraints);
            results.push_back({std::string("hier-") + to_string(choice.route), choice,
                               run_hier(topology, options, bytes, choice)});
        }
    }
    return results;
}

}  // namespace bench::simulator
