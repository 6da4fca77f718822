// SPDX-License-Identifier: BSD-3-Clause
// The bounce buffer of a rank in an allgather.
//
//     | own shard, or the bundle of a leader | from sender a | from sender b | ...
//
// A sender counts its own puts alone: its first put goes to the place that the receiver announces
// to it, and each further put goes behind the one before. So the sender need not know what else
// enters at the receiver.
#pragma once

#include "coll/allgather/routing.hpp"
#include "coll/common/bounce_layout.hpp"

namespace hier {

struct AllgatherBounce {
    BounceLayout layout;
    std::vector<BouncePlace> places;  // by sender
};

AllgatherBounce allgather_bounce(const Topology& topology, const AllgatherRouting& routing,
                                 Route route, int rank);

// How many shards the bounce buffer of any rank holds at most, where all shards are equal. The same
// on all ranks.
std::size_t bounce_shards(const Topology& topology, Route route);

}  // namespace hier
