// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of a result lie.
//
// A plan names each byte of a result by its *home*, which is the same offset on all ranks. Most
// receive buffers have each block at its home. In MPI_Allgatherv a rank may want its blocks
// elsewhere: they begin at *displacements* of its own.
//
//     homes            |0000|11|222|
//     a rank's buffer  |222|  |0000|  |11|
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "hier/plan.hpp"

namespace hier {

class BlockHomes {
public:
    BlockHomes() = default;
    // By rank, by growing offset. Empty: equal blocks, whose beginnings are `pitch` bytes apart. The
    // blocks outlive this object.
    BlockHomes(std::span<const Extent> blocks, std::size_t pitch) : blocks_(blocks), pitch_(pitch)
    {
    }

    // The block that has this byte.
    std::size_t block_at(std::size_t home) const
    {
        if (blocks_.empty()) return home / pitch_;
        const auto next = std::upper_bound(
            blocks_.begin(), blocks_.end(), home,
            [](std::size_t offset, const Extent& block) { return offset < block.offset; });
        return static_cast<std::size_t>(next - blocks_.begin()) - (next == blocks_.begin() ? 0 : 1);
    }
    std::size_t begin_of(std::size_t block) const
    {
        return blocks_.empty() ? block * pitch_ : blocks_[block].offset;
    }
    // Where this byte lies in a buffer whose blocks begin at these displacements.
    std::size_t displaced(std::size_t home, std::span<const std::size_t> displacements) const
    {
        const std::size_t block = block_at(home);
        return displacements[block] + (home - begin_of(block));
    }

private:
    std::span<const Extent> blocks_;
    std::size_t pitch_ = 1;
};

}  // namespace hier
