// SPDX-License-Identifier: BSD-3-Clause
// One rank's part in a collective call, as the caller passes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hier/transport.hpp"

namespace hier {

struct Call {
    std::size_t collective;  // index among the team's collectives
    // Of each rank's block that this call moves, of the largest one if they differ. Equal on all
    // ranks.
    std::size_t bytes;
    bool in_place;  // `send` is a part of `receive`
    Region send;
    Region receive;
    // Local: the error of the GPU's runtime if it could not tell whose memory the buffers are. Then
    // no call takes them.
    Status memory_error = Status::ok;
    // From the beginning of one block in `receive` to that of the next; equal on all ranks. 0: they
    // lie side by side. A part of a larger call leaves gaps. Where blocks differ: the bytes of the
    // largest block of that larger call.
    std::size_t stride = 0;
    bool in_background = false;  // the application may compute meanwhile
    // By rank, in `receive`; equal on all ranks. Empty: all blocks have `bytes` bytes.
    std::vector<Extent> blocks = {};
    // Local. By rank, where the blocks begin in `receive`, if not at these offsets. Only where
    // Team::takes_displacements says so.
    std::vector<std::size_t> displacements = {};

    std::size_t pitch() const { return stride > 0 ? stride : bytes; }
    // Bytes of the result. Equal blocks: up to the end of the last one's stride.
    std::size_t total(int ranks) const
    {
        std::size_t end = blocks.empty() ? pitch() * static_cast<std::size_t>(ranks) : 0;
        for (const Extent& block : blocks) end = std::max(end, block.offset + block.length);
        return end;
    }
    bool operator==(const Call&) const = default;
};

}  // namespace hier
