// SPDX-License-Identifier: BSD-3-Clause
// How ranks share the work for shards of very different sizes.
//
// On several nodes a rank keeps the first bytes of its shard. It hands the rest over to ranks of its
// node that have less to send: their carriers. A carrier passes such bytes on as if they were its
// own. So all rails of a node have as much to do.
//
//     shards          kept       carried
//     r0 |##          ##         ###  of r3
//     r1 |####        ####       #    of r2
//     r2 |######      #####
//     r3 |########    #####
//
// On a single node there are four ways. Costs decide, which are equal on all ranks.
//
//     plain       each rank pushes its shard to all others
//     balanced    by copy engines: ranks first hand over parts, as above. Then all have as much, and
//                 push that to all others in turn
//     carriers    by cores: ranks with small shards pass on parts of large ones (carriers.hpp)
//     ring        all shards go round a ring of all ranks
//
// In a ring a rank sends what it has received from the rank on its left to the one on its right. So
// each rank sends and receives each byte once, whoever owns it, and takes from one rank at a time.
// Ranks that meet at a receiver would delay each other.
//
//     P ranks, one has S bytes    a rank sends up to    hops    good for
//     plain                       (P-1) S               1       shards of about the same size
//     balanced                    2 (P-1)/P S           2       others, of GPUs
//     carriers                    S to 2 S              2       one large shard, up to some MiB
//     ring                        S                     P-1     larger ones
//
// Two copy engines that meet at a receiver get half the rate each, and ranks that are out of step meet
// again and again. So balanced ranks take turns: all begin when all parts have been handed over, and
// in step s a rank pushes to the one s places behind it. A carrier has less for the owner of what it
// carries. So it stands behind the owner, whose turn then comes last. Where the carrier would be ahead
// all the same, it waits for what it gets in the same step. (Engines that signal at the end of a batch
// make it wait for all that the sender pushes.)
//
//     turns r3 r0 r2 r1    r0 carries for r3, r1 for r2
//     step 1               r3 > r0, r0 > r2, r2 > r1, r1 > r3
//     step 2               r3 > r2, r0 > r1, r2 > r3, r1 > r0
//     step 3               r3 > r1, r0 > r3, r2 > r0, r1 > r2
//
// Source: the ring allgather (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication
// Operations in MPICH, 2005), pipelined by chunk.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coll/allgather/carriers.hpp"
#include "coll/allgather/plan.hpp"
#include "hier/plan.hpp"
#include "hier/topology.hpp"

namespace hier {

class AllgatherSpread {
public:
    AllgatherSpread(const Topology& topology, std::span<const Extent> shards,
                    const SpreadCosts& costs);

    Extent kept(int rank) const { return kept_[static_cast<std::size_t>(rank)]; }
    // Those of a node. An owner has one at most for each carrier, and no part to carry.
    std::span<const Handover> handovers(int node) const
    {
        const auto n = static_cast<std::size_t>(node);
        return n < handovers_.size() ? std::span<const Handover>(handovers_[n])
                                     : std::span<const Handover>();
    }
    // Do the shards of the only node go round a ring? In chunks of so many bytes; 0: they do not.
    std::size_t ring_chunk() const { return ring_chunk_; }
    // The ranks of the only node in the order of their turns; empty: they are not balanced.
    std::span<const int> turns() const { return turns_; }

private:
    void spread_on_node(std::span<const int> ranks, const SpreadCosts& costs);
    void carry(std::span<const int> ranks, const SpreadCosts& costs, std::size_t other_way);
    void hand_over(std::span<const int> ranks, std::size_t unit, std::vector<Handover>& handovers);

    std::vector<Extent> kept_;                      // by rank
    std::vector<std::vector<Handover>> handovers_;  // by node; empty: there are none
    std::size_t ring_chunk_ = 0;
    std::vector<int> turns_;
};

}  // namespace hier
