// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell one another to see that they make the same call: the bytes of its result, and a
// hash of the blocks where they differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hier/plan.hpp"

namespace hier {

class CallShape {
public:
    static constexpr int total_bits = 48;

    static constexpr std::uint64_t encode(std::size_t total, std::uint16_t hash)
    {
        return (total & max_total) | static_cast<std::uint64_t>(hash) << total_bits;
    }
    static constexpr std::size_t total(std::uint64_t shape) { return shape & max_total; }
    // FNV-1a, folded. Parts of different calls may have blocks of the same lengths, at other offsets.
    // No blocks: 0.
    static constexpr std::uint16_t hash(std::span<const Extent> blocks)
    {
        std::uint64_t value = blocks.empty() ? 0 : 0xcbf29ce484222325;
        for (const Extent& block : blocks) {
            value = (value ^ block.offset) * prime;
            value = (value ^ block.length) * prime;
        }
        return static_cast<std::uint16_t>(value ^ value >> 16 ^ value >> 32 ^ value >> 48);
    }

private:
    static constexpr std::uint64_t prime = 0x100000001b3;
    static constexpr std::uint64_t max_total = (std::uint64_t{1} << total_bits) - 1;
};

}  // namespace hier
