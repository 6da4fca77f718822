// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node share the work for shards of different sizes. A rank keeps the first bytes
// of its shard. It hands the rest over to ranks that have less to do: their carriers. A carrier
// passes such bytes on as if they were its own.
//
//     shards          kept       carried
//     r0 |##          ##         ###  of r3
//     r1 |####        ####       #    of r2
//     r2 |######      #####
//     r3 |########    #####
//
// On several nodes the network is the bottleneck, and every rank puts as much on its rail as the
// others of its node. On a single node a rank G-1 times pushes what it keeps, once what it hands
// over, and G-2 times what it carries. There no rank pushes more than some rank has to receive.
//
// Source: the scatter-allgather broadcast of van de Geijn, for shards that a balanced rank need not
// scatter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hier/plan.hpp"
#include "hier/topology.hpp"

namespace hier {

// A part of a shard that another rank of the owner's node carries.
struct Handover {
    int owner, carrier;
    Extent part;  // by its home
};

class AllgatherSpread {
public:
    // Hands over multiples of `unit` bytes, on nodes that gain at least as much as `worth` units take.
    // 0: everybody keeps all.
    static constexpr std::size_t worth = 5;
    AllgatherSpread(const Topology& topology, std::span<const Extent> shards, std::size_t unit);

    Extent kept(int rank) const { return kept_[static_cast<std::size_t>(rank)]; }
    // Those of a node. An owner has one at most for each carrier.
    std::span<const Handover> handovers(int node) const
    {
        const auto n = static_cast<std::size_t>(node);
        return n < handovers_.size() ? std::span<const Handover>(handovers_[n])
                                     : std::span<const Handover>();
    }

private:
    void spread(const Topology& topology, int node, std::size_t unit);

    std::vector<Extent> kept_;                      // by rank
    std::vector<std::vector<Handover>> handovers_;  // by node; empty: there are none
};

}  // namespace hier
