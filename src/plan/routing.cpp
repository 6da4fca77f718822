#include "plan/routing.hpp"

#include <algorithm>

namespace hier {

std::vector<Slice> AllgatherRouting::bundle(int node) const
{
    std::vector<Slice> shards;
    for (const int rank : topo_.ranks_on(node))
        if (shard(rank).length > 0) shards.push_back(shard(rank));
    std::sort(shards.begin(), shards.end(),
              [](const Slice& a, const Slice& b) { return a.offset < b.offset; });
    std::vector<Slice> slices;
    for (const Slice& s : shards) {
        if (!slices.empty() && slices.back().offset + slices.back().length == s.offset) {
            slices.back().length += s.length;
        } else {
            slices.push_back(s);
        }
    }
    return slices;
}

bool AllgatherRouting::leads(int rank) const
{
    const int node = topo_.node_of(rank);
    for (int other = 0; other < topo_.nodes(); other++)
        if (other != node && topo_.leader(node, other) == rank) return true;
    return false;
}

int AllgatherRouting::previous_hop(int source, int node) const
{
    if (shape_.route != Route::ring) return source;
    return topo_.entry(source, (node + topo_.nodes() - 1) % topo_.nodes());
}

const char* to_string(Route route)
{
    switch (route) {
    case Route::direct:
        return "direct";
    case Route::ring:
        return "ring";
    case Route::bundles:
        return "bundles";
    }
    return "unknown";
}

}  // namespace hier
