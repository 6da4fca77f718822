// SPDX-License-Identifier: BSD-3-Clause
// A plan lists what one rank does in one collective call: plain data, no I/O.
//
// A *pair* is an ordered pair of ranks on one level. The puts of a pair are counted from 1, and the
// receiver waits for counts. On the rail level the puts of a pair are issued, and arrive, in the
// order of their counts. On the node level the receiver knows only how many puts have arrived, not
// which ones. But a put that was issued when another one was done counts after that one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hier/topology.hpp"

namespace hier {

// A run of bytes in one buffer.
struct Extent {
    std::size_t offset;  // bytes from the start of the buffer
    std::size_t length;  // bytes
    bool operator==(const Extent&) const = default;
};

// The bytes that one transfer moves. Both offsets are from the start of the buffer at that end. In
// receive buffers they are homes, which transports replace if blocks are displaced (block_homes.hpp).
struct Slice {
    std::size_t source;  // in this rank's buffer Op::from
    std::size_t target;  // put: in the peer's receive buffer; copy: in this rank's buffer Op::to
    std::size_t length;  // bytes
    bool operator==(const Slice&) const = default;
};

enum class Level : std::uint8_t {
    node,  // ranks of one node: copy engines, or the CPU for host memory
    rail,  // ranks of one rail on different nodes: RDMA
};

// One of a rank's own buffers.
enum class Place : std::uint8_t {
    send,  // the user's send buffer; never written; not used in place
    receive,
    // Memory that the network reaches, for a rank whose other buffers the network does not reach.
    // Puts on the rail read and write this memory. On the node level only copies use it. It holds
    // only what passes through it, packed.
    bounce,
};

// The part of a rank's bounce buffer that the puts of one rail peer go to.
struct BouncePlace {
    int peer;            // team rank
    std::size_t offset;  // of its first put; each further put goes behind the one before
    bool operator==(const BouncePlace&) const = default;
};

struct Op {
    enum class Kind : std::uint8_t {
        copy,  // between two buffers of the rank, which is `peer`; on the node level
        // Tells `peer`, or every_peer of the node, that this rank is in the call, and that its
        // receive buffer may be written. On the rail that is the peer's place in its bounce buffer
        // if there is one.
        announce,
        // Tells `peer`, or every_peer of the node, that this rank is in the call. For calls in
        // which this rank does not announce, if it puts nothing of its own to that peer.
        enter,
        await_announced,  // until `peer` has announced, or is known to publish
        // Until `peer` is known to be in the call: the peer has entered, announced or put. For
        // calls in which this rank does not announce.
        await_entered,
        // Writes the slice into the buffer that `peer` announced, and then counts it there. Done
        // when the source may be reused. In a published call: lets every_peer of the node read the
        // slice. On the node level a slice may be empty. Such a put only tells the peer that its
        // dependencies are done.
        put,
        drain,       // until all that went to `peer` before lands without our help
        await_data,  // until `count` puts of `peer` have arrived
    };
    static constexpr std::int32_t every_peer = -1;

    Kind kind;
    Level level;
    Place from;                      // copy, put
    Place to;                        // copy
    std::int32_t peer;               // team rank
    std::uint32_t count;             // put: its number in the pair; await_data: how many puts
    Slice slice;                     // copy, put
    std::uint32_t first_dependency;  // into Plan::dependencies
    std::uint32_t dependencies;
    // A put on the rail: the bytes of the puts before it in its pair. Where the peer has announced
    // a bounce buffer, the put goes so far behind the peer's place for this rank.
    std::size_t packed = 0;
};

// Does such an op wait for a peer to come into the call?
inline bool awaits_peer(Op::Kind kind)
{
    return kind == Op::Kind::await_announced || kind == Op::Kind::await_entered;
}

struct Plan {
    std::vector<Op> ops;  // in the order in which they are preferred when several may run
    std::vector<std::uint32_t> dependencies;  // indices of earlier ops that must be done first
    int depth = 2;                            // puts on the rail that may be in flight at a time
    std::size_t bounce_bytes = 0;             // of the bounce buffer
    std::vector<BouncePlace> bounce_places = {};  // in it, one for each rail peer that puts

    // Adds an op behind all others, and returns its index. `after` has the indices of the ops that
    // must be done first.
    std::uint32_t append(Op op, const std::vector<std::uint32_t>& after = {});

    std::span<const std::uint32_t> dependencies_of(const Op& op) const
    {
        return std::span(dependencies).subspan(op.first_dependency, op.dependencies);
    }
};

}  // namespace hier
