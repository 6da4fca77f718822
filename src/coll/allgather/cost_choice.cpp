// SPDX-License-Identifier: BSD-3-Clause
// The choice of route, chunk and window, by the times that AllgatherCost predicts.
#include <algorithm>
#include <cmath>

#include "coll/allgather/cost.hpp"

namespace hier {
namespace {

// The share of the best choice's time that another one may take at most. The formula leaves out some
// costs of more chunks, and of puts that all come at once.
constexpr double worthwhile = 0.99;

// Over TCP smaller chunks cost more than the formula knows. On 2 nodes of 4 ranks with a link of 10
// Gbit/s, 1 MiB takes 4.2 to 4.4 ms in chunks of 64 KiB while the ranks compute, and 3.7 in chunks of 256
// KiB (doc/performance-history.md).
constexpr std::size_t min_tcp_chunk = 256 << 10;

bool is_tcp(const Rates& rates) { return rates.nic_gap > 0; }

}  // namespace

bool AllgatherCost::is_eager(std::size_t bytes, Route route, const Constraints& constraints) const
{
    const std::size_t shards = route == Route::bundles ? static_cast<std::size_t>(max_members_) : 1;
    return nodes_ > 1 && bytes <= constraints.eager_bytes / shards;
}

// Are bundles worth their handshake? With copy engines they are if a bundle lies side by side and
// is not cut. Then a block of a bundle costs no copy of its own, whose start takes longer than its
// bytes.
//
// Cores save little. Over TCP bundles were the fastest only on 4 nodes of 8 ranks. On other layouts
// they were very slow, with several messages of 64 KiB at a time into one node.
bool AllgatherCost::is_worth_bundling(std::size_t bytes, const Constraints& constraints) const
{
    constexpr std::size_t most = 16 << 20;  // of a bundle
    const std::size_t whole = constraints.chunk == 0 ? most : std::min(most, constraints.chunk);
    return nodes_ > 1 && max_members_ > 1 && are_neighbours_ && rates_.engines && !is_tcp(rates_) &&
           bytes <= whole / static_cast<std::size_t>(max_members_);
}

bool AllgatherCost::is_choice(std::size_t bytes, Route route, const Constraints& constraints) const
{
    return route != Route::bundles || is_eager(bytes, route, constraints) ||
           is_worth_bundling(bytes, constraints);
}

// The smallest window that keeps the NIC busy.
int AllgatherCost::window(std::size_t bytes, Route route, std::size_t chunk) const
{
    // One put is on its way while the next is being posted.
    const double least = 2.0 * rates_.lanes;
    const RouteLoad& busiest = load(route);
    if (busiest.nic == 0) return static_cast<int>(least);
    const double size = static_cast<double>(bytes);
    const double c = std::min(static_cast<double>(chunk), size);
    const double k = std::ceil(size / c);
    const double needed = busiest.out * k * (c / rates_.nic + 2 * rates_.nic_latency) /
                          network_time(bytes, route, static_cast<std::size_t>(k));
    return static_cast<int>(std::clamp(std::ceil(needed), least, double{max_chosen_depth}));
}

// A put whose cost is half a percent of its time on the wire gains nothing from being larger, and over TCP
// two percent. Smaller puts let the network run more evenly than the formula knows. On 2 nodes of a rank,
// 8 MiB over TCP with 10 Gbit/s took 8.0 ms in chunks of 2 MiB, and 7.0 in chunks of 128 KiB to 1 MiB.
double AllgatherCost::largest_chunk(Route route) const
{
    const double share = is_tcp(rates_) ? 0.02 : 0.005;
    const RouteLoad& busiest = load(route);
    const double sharing = static_cast<double>(std::max(busiest.nic, 1)) / std::max(busiest.out, 1);
    return rates_.nic_issue * rates_.nic * rates_.lanes / (share * sharing);
}

// Applies the constraints that must not change the choice. The window may differ from rank to rank.
// The rest must be the same on all ranks.
Choice AllgatherCost::granted(std::size_t bytes, Choice choice,
                              const Constraints& constraints) const
{
    if (choice.route == Route::bundles) {
        if (constraints.chunk > 0) choice.chunk = std::min(choice.chunk, constraints.chunk);
        choice.publish = is_publish(bytes, choice.route, choice.chunk);
        if (constraints.depth > 0) choice.depth = constraints.depth;
    } else if (constraints.depth > 0) {
        choice = predict(bytes, choice.route, choice.chunk, constraints.depth, choice.eager);
    }
    if (constraints.publish)
        choice.publish = *constraints.publish && fits_publish(bytes, choice.route, choice.chunk);
    choice.host_publishes =
        !choice.publish && bytes <= rates_.host_publish_bytes &&
        fits_halves(bytes, choice.route, choice.chunk, rates_.host_publish_space);
    return choice;
}

Choice AllgatherCost::choose(std::size_t bytes, const Constraints& constraints) const
{
    constexpr std::size_t page = 4096;
    // With a handshake the hops of a bundle come one after the other, and each may be late.
    constexpr double worth_a_hop = 0.8;
    const std::size_t least =
        is_tcp(rates_) ? std::max(constraints.min_chunk, min_tcp_chunk) : constraints.min_chunk;
    Choice best;
    const auto consider = [&](std::size_t chunk) {
        // On two nodes a ring is the same as direct puts. On more, a ring has two neighbours only,
        // so no link has to take from several ranks at once.
        const Route first = nodes_ > 2 ? Route::ring : Route::direct;
        const Route second = nodes_ > 2 ? Route::direct : Route::ring;
        for (const Route route : {first, second, Route::bundles}) {
            if (constraints.route ? *constraints.route != route
                                  : !is_choice(bytes, route, constraints))
                continue;
            const double most = std::max(largest_chunk(route), 2.0 * static_cast<double>(least));
            const bool is_pointless = constraints.chunk == 0 && rates_.nic_issue > 0 &&
                                      nodes_ > 1 && static_cast<double>(chunk) > most;
            if (is_pointless) continue;
            const int depth = window(bytes, route, chunk);
            const Choice choice =
                predict(bytes, route, chunk, depth, is_eager(bytes, route, constraints));
            const bool is_hop = route == Route::bundles && !choice.eager;
            const double share = is_hop ? worth_a_hop : worthwhile;
            if (best.chunk == 0 || choice.seconds < best.seconds * share) best = choice;
        }
    };
    if (constraints.chunk > 0 && nodes_ > 1) {
        consider(std::min(constraints.chunk, bytes));
        return granted(bytes, best, constraints);
    }
    for (std::size_t cuts = 1; cuts == 1 || bytes / cuts >= least; cuts *= 2) {
        const std::size_t even = (bytes + cuts - 1) / cuts;
        consider(cuts == 1 ? even : (even + page - 1) / page * page);
        if (nodes_ == 1) break;  // nothing overlaps, so a cut only costs
    }
    return granted(bytes, best, constraints);
}

}  // namespace hier
