// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node divide what they share for device cells.
//
//   node's segment       one ring of entries for every pair of ranks
//   a receiver's memory  | cells for peer 1: 0 1 ... 7 | cells for peer 2: 0 1 ... 7 | ...
//
// Peer k is the rank k places behind the receiver. Fragment i of a pair is in cell i % 8.
#pragma once

#include "node/node_path.hpp"

namespace hier {

class DeviceCellLayout {
public:
    static constexpr std::size_t cells_per_peer = NodeLayout::device_cells_per_peer;
    // Fragments that one side copies at a time. The other side works on the rest meanwhile.
    static constexpr std::size_t max_at_once = cells_per_peer / 2;
    static constexpr std::size_t max_bytes = 64 << 20;  // that a rank lends to all its peers

    using Entry = DeviceCellEntry;
    using Ring = EntryRing<Entry>;

    explicit DeviceCellLayout(const NodeContext& context) : context_(context) {}

    // False: the node has too many ranks.
    bool exists() const;
    Ring ring(int from, int to) const;
    std::size_t cell_bytes() const;
    // Bytes of all cells that a rank lends.
    std::size_t lent_bytes() const;
    // Where the cells for `from` begin in the memory that `to` lends.
    std::size_t offset(int from, int to) const;

private:
    const NodeContext& context_;
};

}  // namespace hier
