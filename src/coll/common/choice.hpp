// SPDX-License-Identifier: BSD-3-Clause
// How a collective call travels, as a cost model chooses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hier {

// How a shard reaches the other nodes.
enum class Route : std::uint8_t {
    direct,  // from its owner to every node, one hop
    ring,    // from node to node, nodes - 1 hops
    // With the other shards of its node. One rank of the node puts them all to one rank of every
    // other node.
    bundles,
};
inline constexpr Route all_routes[] = {Route::direct, Route::ring, Route::bundles};
const char* to_string(Route route);  // direct, ring, bundles

// Equal on all ranks, but for `depth`.
struct Choice {
    Route route = Route::direct;
    std::size_t chunk = 0;   // bytes of one put at most; > 0
    int depth = 0;           // puts on the rail in flight
    bool own_whole = false;  // ranks push their own shards to their node uncut
    bool eager = false;      // puts on the rail do not wait for their receivers
    bool publish = false;    // puts on the node go to all of its ranks and wait for none
    // Those of ranks whose buffers are in host memory do. The other ranks announce.
    bool host_publishes = false;
    // Predicted times, in seconds. `seconds` is the whole call: the larger of the other two, or for
    // bundles their sum. For bundles `links` has only the part that the network does not hide.
    double seconds = 0;
    double network = 0;
    double links = 0;

    // Do ranks put what they have received to ranks of other nodes?
    bool passes_on() const { return route != Route::direct; }
};

inline constexpr int max_chosen_depth = 64;

// Limits that a choice has to keep.
struct Constraints {
    std::optional<Route> route;
    std::size_t chunk = 0;                 // 0: choose
    int depth = 0;                         // 0: choose. Changes neither route nor chunk
    std::size_t min_chunk = 32 << 10;      // smaller puts cost more than their bytes
    std::size_t eager_bytes = 0;           // the largest eager message; 0: none
    std::optional<bool> publish;           // publish what fits, or nothing
    std::uint32_t max_count = UINT32_MAX;  // puts that can be counted between two ranks
};

}  // namespace hier
