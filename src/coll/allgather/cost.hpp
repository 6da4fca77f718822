// SPDX-License-Identifier: BSD-3-Clause
// How long an allgather takes by a formula, and which route, chunk and window that makes the best.
//
// N nodes, G ranks a node, shards of S bytes in k chunks of c. e: shards that enter at a rank,
// o: that it puts on its rail (evenly: e = o = N-1). D: window, L: latency of the rail, B: rate of a
// NIC, b: of as many as a rank's chunks go over, p: what a put costs its rank's core, l and i:
// start and issue of a copy.
//
//   Q(copies) = max(sum of (l + c/rate) / streams, copies * i, bytes of a port / its rate)
//   fan(c)    = Q(n (G-1) pushes) (+ l + c/stage out of the bounce buffer)    of n chunks, one a lane,
//                                                                              which land at once
//   rail      = max(NIC's bytes / b, o k (c/B + 2L) / D, (o + e) k p, M k t)   window of D puts
//   ring      : at least (N-1) (c/B + L), a chunk being handed on when it is there
//   rail end  = L + rail + L + max(fan(c), L)                                  announce, last chunks
//   node end  = i + l + Q((k + e k) (G-1) pushes, own copy, staging)               it never rests
//   time      = max(rail end, node end)
//
// M: shards through a NIC, each of whose puts takes it for t. Eager: nobody announces, and what messages
// cost, the cores at both ends q each, was seen to hide under nothing (up to 8 KiB):
//
//   rail      = NIC's bytes / B + k max((o + e) q, M t)
//   ring      : rail = NIC's bytes / B + (N-1) (L + k max(2q, M t / (N-1))) - L
//
// Bundles, one of them being b = G S bytes in m messages, f of them leaving a rank and entering at it.
// Who spreads one has little to take in meanwhile: a core then pushes at the rate a.
//
//   gather    = i + Q(G-1 pushes of S)
//   time      = max(gather, L; eager: gather) + rail of 2 f m messages + L + Q(f m (G-1) pushes of b/m)
//
// Copy engines spread one bundle while the next is on its way: less min(rail, Q) (f-1)/f. Staged,
// a bundle is copied out before the first leaves and the last one in behind the rail; Q has the others.
//
// Where nodes are alike and nothing is staged, own pushes and fan-outs come one after the other:
//
//   node end  = i + l + Q((G-1) own pushes, own copy) + Q(e k (G-1) pushes)
//   rail end  : at least 2L + c/B + i + Q(e k (G-1) pushes)                   from the first chunk on
//   Q(n equal pushes) : at least ceil(n / streams) (l + c/rate)
//
// Direct puts to uneven nodes: NIC's bytes counts, for each distance, those of the busiest NIC.
// Copy engines push the own shard uncut (AllgatherShape::own_whole). Not so a core, which serves the
// network in between; nor where copies in would wait for it, or where nodes are uneven and ranks
// would meet at a port for as long.
//
// Source: the pipelined hierarchical allgather's max(inter, intra) + last chunk (Traeff et al.;
// drawing in plan.cpp), with the window of the executor and the issue and start costs that
// were measured for copy engines. bench/simulate runs the plans themselves; test_cost compares.
#pragma once

#include <cstddef>
#include <iterator>

#include "coll/allgather/load.hpp"
#include "coll/common/choice.hpp"
#include "coll/common/rates.hpp"
#include "hier/topology.hpp"

namespace hier {

// Pure; a value that depends on nothing but its arguments.
class AllgatherCost {
public:
    AllgatherCost(const Topology& topology, const Rates& rates);

    // Fills in the times. `bytes` of every rank, > 0.
    Choice predict(std::size_t bytes, Route route, std::size_t chunk, int depth,
                   bool eager = false) const;
    // The best of the routes and of shards cut into 1, 2, 4, ... chunks that are no larger than
    // their cost wants; the window that keeps the NIC busy.
    Choice choose(std::size_t bytes, const Constraints& constraints = {}) const;
    // What the module before ours takes, roughly: recursive doubling or Bruck's algorithm over all
    // ranks, as Open MPI's tuned chooses them for small calls.
    double fallback(std::size_t bytes) const;
    // Is this route one of those that choose() takes without being told? Bundles only where they are
    // eager, or spread by copy engines.
    bool is_choice(std::size_t bytes, Route route, const Constraints& constraints) const;

private:
    // What goes to another node is a shard, or a node's shards.
    bool is_eager(std::size_t bytes, Route route, const Constraints& constraints) const;
    const RouteLoad& load(Route route) const { return load_[static_cast<std::size_t>(route)]; }
    Choice bundled(std::size_t bytes, bool eager) const;
    double lane_share(Route route, std::size_t chunks) const;
    double network_time(std::size_t bytes, Route route, std::size_t chunks) const;
    double rail_time(std::size_t bytes, Route route, std::size_t chunk, int depth) const;
    double eager_time(std::size_t bytes, Route route, std::size_t chunks) const;
    int window(std::size_t bytes, Route route, std::size_t chunk) const;
    Choice granted(std::size_t bytes, Choice choice, const Constraints& constraints) const;
    // Nodes are alike and nothing is staged: own pushes, and then each chunk's as it comes.
    bool pushes_own_first() const;
    bool is_own_whole() const { return rates_.engines && pushes_own_first(); }
    double pushing_time(const Rates& rates, double count, int members, double c) const;
    double links_time(const Rates& rates, const RouteLoad::Node& node, double size, double c) const;
    double largest_chunk(Route route) const;
    bool is_publish(std::size_t bytes, Route route, std::size_t chunk) const;
    bool is_worth_bundling(std::size_t bytes, const Constraints& constraints) const;
    Rates rates_for(std::size_t bytes, bool is_publish) const;

    int ranks_;
    int nodes_;
    int max_members_ = 1;         // of a node
    bool are_neighbours_ = true;  // in rank order, those of each node
    Rates rates_;
    RouteLoad load_[std::size(all_routes)];
};

}  // namespace hier
