// SPDX-License-Identifier: BSD-3-Clause
// The properties of a call that an allgather plan is made from. Every byte has one home offset, the
// same in all receive buffers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coll/common/choice.hpp"
#include "hier/plan.hpp"

namespace hier {

// In bytes that move meanwhile.
struct SpreadCosts {
    std::size_t unit = 0;   // 10 us; ranks hand over multiples of it. 0: shards are not spread
    std::size_t start = 0;  // of a copy that waits for another one
    // On a single node.
    std::size_t put = 0;    // of a rank, for each of its puts
    std::size_t grain = 1;  // ranks hand over multiples of so many bytes
    // Cores copy. Then most puts are over when they return, and a rank has to copy its own shard. Some
    // 8 cores use up the memory's rate.
    bool by_cores = false;
};

struct AllgatherShape {
    std::span<const Extent> shards;  // of all ranks, in the receive buffers, without overlap
    std::size_t chunk;               // bytes of one put at most; > 0
    Route route;
    // Local: these may differ from rank to rank.
    bool in_place;  // the rank's own shard is in its receive buffer already
    bool bounce;    // the rank's network reaches only its bounce buffer
    int depth = 2;  // puts on the rail in flight; > 0
    // Rail peers need not be in the call yet, because their network keeps early messages. Equal on
    // all ranks.
    bool eager = false;
    // A rank puts to all ranks of its node at once, whether they are in the call or not. Equal on
    // all ranks, but in mixed calls (Binding::is_mixed).
    bool publish = false;
    // Ranks push their own shards to their node uncut. Equal on all ranks.
    bool own_whole = false;
    // Local: this rank copies its own shard uncut, because no core does it.
    bool copy_whole = false;
    // Shards of very different sizes are spread (spread.hpp). Equal on all ranks. Not with eager or
    // published calls, nor with bundles.
    SpreadCosts spread = {};
};

// The overlapped rail and fan-out allgather of `rank`. plan.cpp has a drawing and the bytes per
// link.
Plan plan_allgather(const Topology& topology, int rank, const AllgatherShape& shape);

// One equal shard for each of `ranks` ranks, in rank order. They begin `stride` bytes apart.
std::vector<Extent> equal_shards(int ranks, std::size_t bytes_per_rank, std::size_t stride);
// The same, side by side.
inline std::vector<Extent> equal_shards(int ranks, std::size_t bytes_per_rank)
{
    return equal_shards(ranks, bytes_per_rank, bytes_per_rank);
}

}  // namespace hier
