// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/bounce.hpp"

#include <algorithm>

namespace hier {

AllgatherBounce allgather_bounce(const Topology& topology, const AllgatherRouting& routing,
                                 Route route, int rank)
{
    AllgatherBounce bounce;
    if (route != Route::bundles) {
        if (topology.nodes() > 1) bounce.layout.add(routing.kept(rank));
        routing.for_each_handover(rank, [&](const Handover& h) {
            if (topology.nodes() > 1 && h.carrier == rank) bounce.layout.add(h.part);
        });
    } else if (routing.leads(rank)) {
        for (const Extent& part : routing.bundle(topology.node_of(rank))) bounce.layout.add(part);
    }
    // What one sender puts lies together, in the order of its puts.
    std::map<int, std::vector<Extent>> from;
    std::vector<int> senders;  // in the order in which their first puts are awaited
    routing.for_each_entering(rank, [&](int source, Extent whole) {
        const int sender = routing.previous_hop(source, topology.node_of(rank));
        auto& extents = from[sender];
        if (extents.empty()) senders.push_back(sender);
        extents.push_back(whole);
    });
    for (const int sender : senders) {
        bounce.places.push_back({sender, bounce.layout.bytes()});
        for (const Extent& whole : from[sender]) bounce.layout.add(whole);
    }
    return bounce;
}

// A rail's ranks on a node share what enters there, and their shares differ by one at most
// (Topology::entry).
std::size_t bounce_shards(const Topology& topology, Route route)
{
    const auto round_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
    const auto nodes = static_cast<std::size_t>(topology.nodes());
    const auto rails = static_cast<std::size_t>(topology.rails());
    std::size_t most = 0, largest = 0;
    for (int node = 0; node < topology.nodes(); node++) {
        const std::size_t ranks = topology.ranks_on(node).size();
        largest = std::max(largest, ranks);
        for (std::size_t rail = 0; rail < rails; rail++) {
            const std::size_t here = (ranks - rail + rails - 1) / rails;
            const std::size_t all = topology.ranks_on_rail(static_cast<int>(rail)).size();
            most = std::max(most, round_up(all - here, here));
        }
    }
    if (route != Route::bundles) return 1 + most;
    // A rank leads, and is led to, for one of `rails` nodes at most; a bundle has `largest` shards.
    return largest * (1 + round_up(nodes - 1, rails) * 2);
}

}  // namespace hier
