// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a single node that pass on parts of large shards by their cores.
//
//     owner r0      scatter            pushes of all
//     |########     ## --> r1          r1 -- ## --> r2, r3
//                   ## --> r2          r2 -- ## --> r3, r1
//                   ## --> r3          r3 -- ## --> r1, r2
//                                      r0 -- ## --> r1, r2, r3        what it has kept
//
// The owner of S bytes would push (P-1)*S. Now it sends S, and what it has kept P-2 times more. A
// carrier sends P-2 times what it carries. So all ranks send about as much. A part goes to its
// carrier in one put, which is the first one of its pair. So the carrier knows when it is there.
//
// Parts are not cut: carriers that push while the owner still sends would meet it at their
// receivers. The owner serves carriers in descending order, and each one pushes in ascending order.
// If all begin a part's time after each other, two at most push to the same rank.
//
// Source: scatter and allgather, as in van de Geijn's broadcast (Barnett, Shuler, van de Geijn et
// al.: Interprocessor Collective Communication Library, 1994).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "hier/plan.hpp"

namespace hier {

// A part of a shard that another rank of the owner's node carries.
struct Handover {
    int owner, carrier;
    Extent part;  // by its home
};

struct Carriage {
    std::vector<Handover> handovers;  // by owner, and of an owner in the order of their puts
    std::size_t time = 0;             // in bytes that move meanwhile
};

// Hands over so much that all ranks of the only node end at about the same time, and takes from
// `kept` what is handed over. `kept`: the shards, by rank. `costs`: with a unit. Changes nothing
// where shards are about as large.
Carriage carry_on_node(std::span<const int> ranks, std::vector<Extent>& kept,
                       const SpreadCosts& costs);

}  // namespace hier
