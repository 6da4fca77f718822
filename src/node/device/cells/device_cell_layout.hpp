// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node divide what they share for device cells.
//
//   node's segment       one ring of entries for every pair of ranks
//   a receiver's memory  | cells for peer 1: 0 1 ... 7 | cells for peer 2: 0 1 ... 7 | ...
//
// Peer k is the rank k places behind the receiver. Fragment i of a pair is in cell i % 8.
#pragma once

#include "node/entry_ring.hpp"
#include "node/node_path.hpp"

namespace hier {

class DeviceCellLayout {
public:
    static constexpr std::size_t cells_per_peer = 8;
    // Fragments that one side copies at a time. The other side works on the rest meanwhile.
    static constexpr std::size_t max_at_once = cells_per_peer / 2;
    static constexpr std::size_t max_bytes = 64 << 20;  // that a rank lends to all its peers

    struct Entry {
        std::uint64_t offset;  // in the receive buffer
        std::uint32_t length;
        std::uint32_t is_last;  // of its put
    };
    using Ring = EntryRing<Entry, cells_per_peer>;

    // Bytes of the segment (NodeSegment::more()) that a node of so many ranks needs.
    static std::size_t shared_bytes(int ranks);

    explicit DeviceCellLayout(const NodeContext& context) : context_(context) {}

    Ring& ring(int from, int to) const;
    std::size_t cell_bytes() const;
    // Bytes of all cells that a rank lends.
    std::size_t lent_bytes() const;
    // Where the cells for `from` begin in the memory that `to` lends.
    std::size_t offset(int from, int to) const;

private:
    const NodeContext& context_;
};

}  // namespace hier
