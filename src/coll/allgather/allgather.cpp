// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/allgather.hpp"

#include <algorithm>
#include <numeric>

#include "coll/allgather/bounce.hpp"
#include "coll/allgather/plan.hpp"

namespace hier {
namespace {

std::size_t bytes_of(std::span<const Extent> blocks)
{
    return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0},
                           [](std::size_t sum, const Extent& block) { return sum + block.length; });
}

}  // namespace

// Makes chunks so large that a pair can count them: a pair may put the chunks of all shards.
Constraints Allgather::countable(std::size_t bytes, Constraints constraints) const
{
    const std::size_t chunks_per_shard =
        constraints.max_count / static_cast<std::size_t>(topology_.size());
    const std::size_t least = bytes / chunks_per_shard + 1;
    constraints.min_chunk = std::max(constraints.min_chunk, least);
    if (constraints.chunk > 0) constraints.chunk = std::max(constraints.chunk, least);
    return constraints;
}

Choice Allgather::choose(std::size_t bytes, const Constraints& constraints) const
{
    return cost_.choose(bytes, countable(bytes, constraints));
}

// The start of a copy that waits for a signal: by copy engines of 4 H200, by a core that others share,
// and by a core. The first was measured, the others are assumed. Rings of 16 cores took the same time
// with 1.5, 3 and 10 us.
SpreadCosts Allgather::spread_costs(const Topology& topology, const Rates& rates)
{
    constexpr std::size_t least = 32 << 10, most = 4 << 20, page = 4096;
    constexpr double put = 1.5e-6;  // by a core
    const double rate = topology.nodes() > 1 ? std::min(rates.nic, rates.link) : rates.link;
    const auto meanwhile = [&](double time) {
        return static_cast<std::size_t>(std::min(rate * time, 1e12));
    };
    const double start = rates.engines ? 16e-6 : rates.shares_cores ? 200e-6 : put;
    return {.unit = std::clamp(meanwhile(10e-6) / page * page, least, most),
            .start = meanwhile(start),
            .put = meanwhile(rates.engines ? rates.copy_issue : put),
            .grain = page,
            .by_cores = !rates.engines};
}

Plan Allgather::plan(const PlanInput& input) const
{
    const Choice& choice = input.choice;
    // What goes through shared memory costs its owner the same for one peer and for all.
    const bool is_shared = bytes_of(input.blocks) <= shared_result_;
    const bool are_published = choice.publish || choice.host_publishes;
    const bool is_spread = !input.blocks.empty() && !is_shared && !choice.eager && !are_published &&
                           choice.route != Route::bundles;
    // A rank publishes its shard at once.
    const bool is_whole = choice.own_whole || (are_published && topology_.nodes() == 1);
    std::vector<Extent> equal;
    if (input.blocks.empty()) equal = equal_shards(topology_.size(), input.bytes, input.stride);
    return plan_allgather(topology_, input.rank,
                          {
                              .shards = input.blocks.empty() ? equal : input.blocks,
                              .chunk = input.choice.chunk,
                              .route = input.choice.route,
                              .in_place = input.in_place,
                              .bounce = input.has_bounce,
                              .depth = input.choice.depth,
                              .eager = input.choice.eager,
                              .publish = input.publishes,
                              .own_whole = is_whole,
                              .copy_whole = input.choice.own_whole && input.is_on_device,
                              .spread = is_spread ? spread_ : SpreadCosts{},
                          });
}

StagedBlocks Allgather::staged_blocks(Route route) const
{
    return {static_cast<std::size_t>(topology_.size()), bounce_shards(topology_, route)};
}

// Blocks that differ may be handed over to carriers, which put the owner's block to rail peers.
bool Allgather::takes_displacements(const Choice& choice, bool are_equal) const
{
    if (choice.eager) return false;
    return topology_.nodes() == 1 ||
           (are_equal && !choice.publish && choice.route == Route::direct);
}

Cost Allgather::cost(std::size_t bytes, const Constraints& constraints) const
{
    return {choose(bytes, constraints).seconds, cost_.fallback(bytes)};
}

std::vector<Choice> Allgather::alternatives(std::size_t bytes, const Constraints& constraints) const
{
    std::vector<Choice> others;
    if (constraints.route || topology_.nodes() == 1) return others;
    const Constraints allowed = countable(bytes, constraints);
    const Route taken = cost_.choose(bytes, allowed).route;
    for (const Route route : all_routes) {
        // On two nodes a ring is the same as direct puts.
        const bool is_same = topology_.nodes() == 2 && route == Route::ring;
        if (route == taken || is_same || !cost_.is_choice(bytes, route, allowed)) continue;
        Constraints other = allowed;
        other.route = route;
        others.push_back(cost_.choose(bytes, other));
    }
    return others;
}

}  // namespace hier
