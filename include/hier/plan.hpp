// SPDX-License-Identifier: BSD-3-Clause
// A plan is what one rank does in one collective: plain data, no I/O.
//
// In an allgather every byte has one home offset, the same in every rank's receive buffer, so one
// Slice names both ends of a transfer. A *pair* is an ordered pair of ranks on one level; what
// is put on it is counted from 1, and the receiver waits for counts. On the rail level the puts of
// a pair are issued, and arrive, in the order of their counts. On the node level only the number
// of arrivals is known, not which ones they were; but what was issued when another put was done
// counts after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hier/topology.hpp"

namespace hier {

struct Slice {
    std::size_t offset;  // bytes from the start of the receive buffer
    std::size_t length;  // bytes
    bool operator==(const Slice&) const = default;
};

enum class Level : std::uint8_t {
    node,  // ranks of one node: copy engines, or the CPU for host memory
    rail,  // ranks of one rail on different nodes: RDMA
};

// One of a rank's own buffers. Home offsets are the same in all of them.
enum class Place : std::uint8_t {
    send,  // holds the own shard alone; never written
    receive,
    // What the network can reach, where it cannot reach the others: puts on the rail read and write
    // this one. The node level knows it only from copies.
    bounce,
};

struct Op {
    enum class Kind : std::uint8_t {
        copy,  // between two of the rank's own buffers; on the node level, `peer` is the rank
        // tell `peer` (every_peer: all of the node) that our receive buffer (rail: our bounce
        // buffer, where there is one) may be written
        announce,
        // until `peer` has announced; eager, or of a published call: until it is known to be in the call
        await_ready,
        // write `slice` into the buffer that `peer` announced, then count it there; done when the
        // source may be reused. Of a published call: let every_peer of the node read it
        put,
        drain,       // until what went to `peer` before, puts and all, lands without our help
        await_data,  // until `count` puts of `peer` have arrived
    };
    static constexpr std::int32_t every_peer = -1;

    Kind kind;
    Level level;
    Place from;                      // copy, put
    Place to;                        // copy
    std::int32_t peer;               // team rank
    std::uint32_t count;             // put: its number on the pair; await_data: how many
    Slice slice;                     // copy, put
    std::uint32_t first_dependency;  // into Plan::dependencies
    std::uint32_t dependencies;
};

struct Plan {
    std::vector<Op> ops;  // in the order in which they are preferred when several may run
    std::vector<std::uint32_t> dependencies;  // indices of earlier ops that must be done first
    int depth = 2;                            // puts on the rail that may be in flight at a time

    // Behind all others, with indices of those that must be done first; its own index.
    std::uint32_t append(Op op, const std::vector<std::uint32_t>& after = {});

    std::span<const std::uint32_t> dependencies_of(const Op& op) const
    {
        return std::span(dependencies).subspan(op.first_dependency, op.dependencies);
    }
};

// How a shard reaches the other nodes.
enum class Route : std::uint8_t {
    direct,  // from its owner to every node, one hop
    ring,    // from node to node, nodes - 1 hops
    // With the others of its node: one rank of the node puts them all to one rank of every node
    bundles,
};
inline constexpr Route all_routes[] = {Route::direct, Route::ring, Route::bundles};
const char* to_string(Route route);  // direct, ring, bundles

struct AllgatherShape {
    std::span<const Slice> shards;  // of every rank; they do not overlap
    std::size_t chunk;              // bytes of one put at most; > 0
    Route route;
    // Local: these may differ from rank to rank.
    bool in_place;  // the rank's own shard is in its receive buffer already
    bool bounce;    // the rank's network reaches only its bounce buffer
    int depth = 2;  // puts on the rail in flight; > 0
    // Rail peers need not be in the call yet: their network keeps what is early. Equal on all ranks.
    bool eager = false;
    // What a rank puts to its node it puts to all of it at once, whether they are in the call or
    // not. Equal on all ranks.
    bool publish = false;
    // Ranks push their own shards to their node uncut. Equal on all ranks.
    bool own_whole = false;
    bool copy_whole = false;  // local: so does this one copy its shard, for no core does it
};

// The overlapped rail + fan-out allgather of `rank`; diagram and bytes per link in
// src/coll/allgather/plan.cpp.
Plan plan_allgather(const Topology& topology, int rank, const AllgatherShape& shape);

// `total` bytes as one equal shard for each of `ranks` ranks, in rank order.
std::vector<Slice> equal_shards(int ranks, std::size_t bytes_per_rank);

}  // namespace hier
