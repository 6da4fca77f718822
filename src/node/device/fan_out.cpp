// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/fan_out.hpp"

#include <algorithm>
#include <cstdint>

namespace hier {
namespace {

using gpu::FanOut;

constexpr std::size_t max_middle = 16 << 20;  // to all places together

bool is_small_enough(std::size_t bytes, std::size_t places, FanOutUse use)
{
    switch (use) {
    case FanOutUse::never:
        return false;
    case FanOutUse::chunks:
        // Places are peers. An own block may have one more, and be a little larger.
        return bytes <= max_chunk_by_kernel(places) && bytes <= max_middle / places;
    case FanOutUse::middle_blocks:
    case FanOutUse::blocks_to_one:
        return bytes <= max_middle / places;
    case FanOutUse::all_blocks:
        return true;
    }
    return false;
}

bool are_aligned(std::span<const gpu::Copy> copies, std::size_t to)
{
    const auto is_aligned = [to](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) % to == 0;
    };
    return is_aligned(copies.front().from) &&
           std::all_of(copies.begin(), copies.end(),
                       [&](const gpu::Copy& copy) { return is_aligned(copy.to); });
}

}  // namespace

bool is_fan_out(std::span<const gpu::Copy> block, FanOutUse use)
{
    const bool may_be_one = use == FanOutUse::blocks_to_one || use == FanOutUse::all_blocks;
    const std::size_t least = may_be_one ? 1 : 2;
    if (block.size() < least || block.size() > FanOut::max_places) return false;
    const gpu::Copy& first = block.front();
    return is_small_enough(first.bytes, block.size(), use) && are_aligned(block, FanOut::narrow) &&
           std::all_of(block.begin(), block.end(), [&](const gpu::Copy& copy) {
               return is_same_block(first, copy) && copy.lane >= gpu::Copy::inside;
           });
}

bool add_block(std::span<const gpu::Copy> block, FanOut& arguments)
{
    if (arguments.blocks == FanOut::max_blocks ||
        block.size() > FanOut::max_places_in_all - arguments.places)
        return false;
    const gpu::Copy& first = block.front();
    arguments.block[arguments.blocks++] = {static_cast<const unsigned char*>(first.from),
                                           first.bytes, are_aligned(block, FanOut::wide) ? 0U : 1U,
                                           arguments.places,
                                           static_cast<std::uint32_t>(block.size())};
    for (const gpu::Copy& copy : block)
        arguments.to[arguments.places++] = static_cast<unsigned char*>(copy.to);
    return true;
}

}  // namespace hier
