// SPDX-License-Identifier: BSD-3-Clause
// How long an allgather takes by a formula, and the route, chunk and window that are best by it.
//
//     N  nodes                                  S  bytes of a shard
//     G  ranks of a node                        c  bytes of a chunk; a shard has k chunks
//     e  shards that enter at a rank            o  shards that a rank puts on its rail
//     D  window of puts in flight               L  latency of the rail
//     B  rate of a NIC                          b  rate of all NICs that a rank's chunks go over
//     p  time of a rank's core for a put        l  start of a copy
//     q  time of a core for a message           i  issue of a copy
//     M  shards through a NIC                   j  issue and launch of a copy
//     t  gap of a NIC, for each put
//
// On even nodes e = o = N-1.
//
//   Q(copies) = max(sum of (l + c/rate) / streams, copies * i, bytes of a port / its rate)
//   fan(c)    = j + Q(n (G-1) pushes) (+ j + l + c/stage out of the bounce buffer)
//   rail      = max(NIC's bytes / b, o k (c/B + 2L) / D, (o + e) k p, M k t, staging)
//   staging   = (e k - 1) max(i, l + c/stage), with one shard at least
//   ring      : rail at least (N-1) (c/B + L)
//   rail end  = L + rail + L + max(fan(c), L)
//   node end  = j + l + Q((k + e k) (G-1) pushes, own copy)
//   time      = max(rail end, node end)
//
// fan: n chunks land at once, one on each lane. ring: a chunk is handed on when all of it is there.
// rail end: the announcement comes first, the last chunks come last. node end: the queue of copies
// never rests. staging: copies to the bounce buffer and those from it have a stream each; the last
// one from it is a part of fan.
//
// Eager calls. Nobody announces. Messages cost the cores at both ends q each, and up to 8 KiB this
// time was seen to hide under nothing else.
//
//   rail      = NIC's bytes / B + k max((o + e) q, M t)
//   ring      : rail = NIC's bytes / B + (N-1) (L + k max(2q, M t / (N-1))) - L
//
// Bundles. A bundle has W = G S bytes in m messages. f bundles leave a rank, and f enter at it. A
// rank that spreads a bundle has little to take in meanwhile, so a core pushes at
// Rates::link_alone.
//
//   gather    = j + Q(G-1 pushes of S)
//   spread    = launch + Q(f m (G-1) pushes of W/m)
//   time      = max(gather, L; eager: gather) + rail of 2 f m messages + L + spread
//
// Copy engines spread one bundle while the next is on its way, which saves min(rail, spread) (f-1)/f.
// With staging, the first bundle is copied out before it leaves, and the last one is copied in
// behind the rail. The others take their time beside the pushes.
//
// Where nodes are alike, own pushes come first and fan-outs after them:
//
//   node end  = j + l + Q((G-1) own pushes, own copy) + Q(e k (G-1) pushes)
//   rail end  : at least 2L + c/B + j + Q(e k (G-1) pushes)                   from the first chunk on
//   Q(n equal pushes) : at least ceil(n / streams) (l + c/rate)
//
// Kernels push blocks of up to Rates::fan_out bytes to all of a node, up to 16 of them each, with a gap g
// between two kernels. Engines have the other copies:
//
//   Q(copies) = max(Q(those of engines), Q(n blocks by kernels), bytes of a port / its rate)
//   Q(n blocks by kernels) = ceil(n/16) (l + g) - g + n (G-1) c / rate
//   rail end  : the last chunk waits for a kernel that has earlier ones (wait_for_kernel in cost.cpp)
//
// Direct puts to uneven nodes: the NIC's bytes are those of the busiest NIC at each distance, added
// up.
//
// Copy engines push the own shard uncut (AllgatherShape::own_whole). In two cases the shard is cut:
//
// - A core pushes. It serves the network in between.
// - Nodes are uneven. Ranks would meet at a port for as long as the push takes.
//
// Source: the pipelined hierarchical allgather's max(inter, intra) + last chunk (Traeff et al.;
// drawing in plan.cpp), with the executor's window, and with issue and start costs that were
// measured for copy engines. bench/simulate runs the plans themselves. test_cost compares.
#pragma once

#include <cstddef>
#include <iterator>

#include "coll/allgather/load.hpp"
#include "coll/common/choice.hpp"
#include "coll/common/rates.hpp"
#include "hier/topology.hpp"

namespace hier {

// Pure. The results depend on the arguments alone.
class AllgatherCost {
public:
    AllgatherCost(const Topology& topology, const Rates& rates);

    // Fills in the times. `bytes` of every rank, > 0.
    Choice predict(std::size_t bytes, Route route, std::size_t chunk, int depth,
                   bool eager = false) const;
    // The best route, with shards cut into 1, 2, 4, ... chunks that are no larger than their cost
    // wants, and the window that keeps the NIC busy.
    Choice choose(std::size_t bytes, const Constraints& constraints = {}) const;
    // Roughly the time of the fallback module: recursive doubling or Bruck's algorithm over all
    // ranks. Open MPI's tuned chooses these for small calls.
    double fallback(std::size_t bytes) const;
    // May choose() take this route without being told to? It takes bundles only if they are eager
    // or if copy engines spread them.
    bool is_choice(std::size_t bytes, Route route, const Constraints& constraints) const;

private:
    // Is a message between nodes, a shard or a bundle, small enough to be eager?
    bool is_eager(std::size_t bytes, Route route, const Constraints& constraints) const;
    const RouteLoad& load(Route route) const { return load_[static_cast<std::size_t>(route)]; }
    Choice bundled(std::size_t bytes, bool eager) const;
    double lane_share(Route route, std::size_t chunks) const;
    double network_time(std::size_t bytes, Route route, std::size_t chunks) const;
    double rail_time(std::size_t bytes, Route route, std::size_t chunk, int depth) const;
    double eager_time(std::size_t bytes, Route route, std::size_t chunks) const;
    int window(std::size_t bytes, Route route, std::size_t chunk) const;
    Choice granted(std::size_t bytes, Choice choice, const Constraints& constraints) const;
    // Nodes are alike: own pushes come first, then those of each chunk that lands.
    bool pushes_own_first() const;
    bool is_own_whole() const { return rates_.engines && pushes_own_first(); }
    double pushing_time(const Rates& rates, double blocks, int members, double c) const;
    double links_time(const Rates& rates, const RouteLoad::Node& node, double size, double c) const;
    double largest_chunk(Route route) const;
    bool fits_publish(std::size_t bytes, Route route, std::size_t chunk) const
    {
        return fits_halves(bytes, route, chunk, rates_.publish_space);
    }
    bool fits_halves(std::size_t bytes, Route route, std::size_t chunk, std::size_t space) const;
    bool is_publish(std::size_t bytes, Route route, std::size_t chunk) const;
    bool is_worth_bundling(std::size_t bytes, const Constraints& constraints) const;
    Rates rates_for(std::size_t bytes, bool is_publish) const;

    int ranks_;
    int nodes_;
    int max_members_ = 1;         // of a node
    bool are_neighbours_ = true;  // each node has a run of ranks
    Rates rates_;
    RouteLoad load_[std::size(all_routes)];
};

}  // namespace hier
