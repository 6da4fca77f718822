// SPDX-License-Identifier: BSD-3-Clause
// Other algorithms as plans, for comparison. Puts between ranks of one node use links. Puts between
// nodes use NICs, whatever the rail. A step starts when its data is there. The algorithms pay no
// cost of a protocol, and none of reordering at the end.
#pragma once

#include <cstddef>
#include <span>

#include "hier/plan.hpp"

namespace bench::simulator {

struct Task {
    const hier::Topology& topology;
    std::span<const hier::Extent> shards;  // contiguous, in rank order
};

// From rank to rank, P-1 steps of a shard. Only the first and the last rank of a node use a NIC,
// with (P-1) S each way.
[[nodiscard]] hier::Plan plan_flat_ring(const Task& task, int rank);

// With a power of two, partners are at distance 1, 2, 4, ..., log2 P steps. Otherwise this is
// Bruck's algorithm: the same distances to one side, through a buffer that is in order from the own
// shard on. Each of the G ranks of a node sends (N-1) G S through the node's NICs.
[[nodiscard]] hier::Plan plan_doubling(const Task& task, int rank);

// Three phases, one after the other, as in a single-leader module: a gather to the first rank of
// each node, a ring of node blocks between these ranks, and a chain inside each node in segments.
[[nodiscard]] hier::Plan plan_single_leader(const Task& task, int rank, std::size_t segment);

}  // namespace bench::simulator
