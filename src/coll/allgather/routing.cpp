// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/routing.hpp"

#include <algorithm>

namespace hier {

std::vector<Extent> AllgatherRouting::bundle(int node) const
{
    std::vector<Extent> shards;
    for (const int rank : topo_.ranks_on(node))
        if (shard(rank).length > 0) shards.push_back(shard(rank));
    std::sort(shards.begin(), shards.end(),
              [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    std::vector<Extent> extents;
    for (const Extent& s : shards) {
        if (!extents.empty() && extents.back().offset + extents.back().length == s.offset) {
            extents.back().length += s.length;
        } else {
            extents.push_back(s);
        }
    }
    return extents;
}

bool AllgatherRouting::leads(int rank) const
{
    const int node = topo_.node_of(rank);
    for (int other = 0; other < topo_.nodes(); other++)
        if (other != node && topo_.leader(node, other) == rank) return true;
    return false;
}

bool AllgatherRouting::reaches_a_leader(int rank, int target) const
{
    if (target != Op::every_peer) return leads(target);
    bool any = false;
    for_each_node_peer(rank, [&](int peer) { any = any || leads(peer); });
    return any;
}

int AllgatherRouting::previous_hop(int source, int node) const
{
    if (shape_.route != Route::ring) return source;
    return topo_.entry(source, (node + topo_.nodes() - 1) % topo_.nodes());
}

std::vector<bool> allgather_partners(const Topology& topology, int rank)
{
    const int node = topology.node_of(rank);
    std::vector<bool> partners(topology.ranks_on_rail(topology.rail_of(rank)).size());
    const auto add = [&](int peer) {
        partners[static_cast<std::size_t>(topology.rail_index_of(peer))] = true;
    };
    const auto shards = equal_shards(topology.size(), 1);
    for (const Route route : all_routes) {
        const AllgatherShape shape{shards, 1, route, false, false};
        const AllgatherRouting routing(topology, shape);
        routing.for_each_next_hop(rank, rank, add);
        routing.for_each_entering(rank, [&](int source, Extent) {
            add(routing.previous_hop(source, node));
            routing.for_each_next_hop(rank, source, add);
        });
    }
    for (int other = 0; other < topology.nodes(); other++) {
        if (other != node && topology.leader(node, other) == rank) add(topology.entry(rank, other));
    }
    return partners;
}

std::vector<Extent> equal_shards(int ranks, std::size_t bytes_per_rank, std::size_t stride)
{
    std::vector<Extent> shards;
    shards.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; r++)
        shards.push_back({static_cast<std::size_t>(r) * stride, bytes_per_rank});
    return shards;
}

}  // namespace hier
