// SPDX-License-Identifier: BSD-3-Clause
// Writes one rank's plan. Appends operations, counts the puts to each peer, and knows which of the
// rank's buffers holds a byte. The caller decides which bytes go where.
//
// A chunk is named by its home, its place in the receive buffer. The home is the same on all ranks.
// Plans know no other place of a chunk but for the send buffer and the bounce buffer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "coll/common/bounce_layout.hpp"
#include "hier/plan.hpp"

namespace hier {

class PlanWriter {
public:
    using Dependencies = std::vector<std::uint32_t>;  // operations
    struct Buffers {
        Extent own;     // home of the rank's own block. The send buffer holds this block alone
        bool in_place;  // the own block is in the receive buffer already
        // The places in the bounce buffer. nullptr: there is none, because the network reaches the
        // rank's buffers. It outlives the writer.
        const BounceLayout* bounce;
    };

    PlanWriter(int rank, const Buffers& buffers, int depth) : rank_(rank), buffers_(buffers)
    {
        plan_.depth = depth;
    }

    // The functions that add an operation return its index.
    std::uint32_t add(Op::Kind kind, Level level, int peer, const Dependencies& after = {});
    // Waits for `count` puts of the peer.
    std::uint32_t await_data(Level level, int peer, std::uint32_t count);
    // The next put to this peer. `is_own`: the chunk is a part of the rank's own block.
    std::uint32_t put(Level level, int peer, Extent chunk, bool is_own, Dependencies after = {});
    // The next put to this peer of the node has no bytes. It says that `after` is done.
    std::uint32_t empty_put(int peer, Dependencies after);
    // Later puts to this peer wait for these operations. They no longer wait for those of an
    // earlier hold_puts().
    void hold_puts(Level level, int peer, Dependencies until);
    std::uint32_t copy(Place from, Place to, Extent chunk, const Dependencies& after = {});
    // Copies to the bounce buffer. A chunk is copied once for all peers that get it.
    std::uint32_t copy_out(Place from, Extent chunk, const Dependencies& after = {});

    // Where the own block is.
    Place own_place() const { return buffers_.in_place ? Place::receive : Place::send; }
    // The bytes that an operation writes.
    Extent target_of(std::uint32_t op) const
    {
        return {plan_.ops[op].slice.target, plan_.ops[op].slice.length};
    }
    Plan take() && { return std::move(plan_); }

private:
    struct Peer {
        Dependencies before;  // every put
        std::uint32_t puts = 0;
        std::size_t bytes = 0;  // of these puts
    };

    Peer& peer_of(Level level, int rank) { return peers_[static_cast<std::size_t>(level)][rank]; }
    Place source_of(Level level, bool is_own) const;
    std::size_t offset_in(Place place, std::size_t home) const;

    int rank_;
    Buffers buffers_;
    Plan plan_;
    std::map<int, Peer> peers_[2];                     // by level and rank; Op::every_peer is one
    std::map<std::size_t, std::uint32_t> copied_out_;  // the copy, by the offset of the chunk
};

}  // namespace hier
