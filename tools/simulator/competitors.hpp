// SPDX-License-Identifier: BSD-3-Clause
// Other algorithms as plans, for comparison. Puts between ranks of one node use links, between nodes
// NICs, whatever the rail. A step starts when its data is there: no cost of a protocol, and no
// reordering at the end, is charged to them.
#pragma once

#include <cstddef>
#include <span>

#include "hier/plan.hpp"

namespace bench::simulator {

struct Task {
    const hier::Topology& topology;
    std::span<const hier::Extent> shards;  // contiguous, in rank order
};

// From rank to rank, P-1 steps of a shard. Only the last and the first rank of a node use a NIC:
// (P-1) S each way through it.
[[nodiscard]] hier::Plan plan_flat_ring(const Task& task, int rank);

// Powers of two: partners at distance 1, 2, 4, ..., log2 P steps. Others: Bruck's, the same
// distances to one side, through a buffer that is in order from the own shard on. Through a node's NICs go (N-1) G S for each of its G ranks.
[[nodiscard]] hier::Plan plan_doubling(const Task& task, int rank);

// Gather to the first rank of each node, ring of node blocks between those, then a chain inside
// each node in segments: three phases, one after the other, as a single-leader module
// does it.
[[nodiscard]] hier::Plan plan_single_leader(const Task& task, int rank, std::size_t segment);

}  // namespace bench::simulator
