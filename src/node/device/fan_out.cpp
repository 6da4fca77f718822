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
        return bytes <= max_chunk_by_kernel && bytes <= max_middle / places;
    case FanOutUse::middle_blocks:
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

bool as_fan_out(std::span<const gpu::Copy> copies, FanOutUse use, FanOut& arguments)
{
    if (copies.size() < 2 || copies.size() > FanOut::max_places) return false;
    const gpu::Copy& first = copies.front();
    if (!is_small_enough(first.bytes, copies.size(), use)) return false;
    const bool is_one_block = std::all_of(copies.begin(), copies.end(), [&](const gpu::Copy& copy) {
        return is_same_block(first, copy) && copy.lane >= gpu::Copy::inside;
    });
    if (!is_one_block || !are_aligned(copies, FanOut::narrow)) return false;
    arguments = {};
    arguments.from = static_cast<const unsigned char*>(first.from);
    arguments.bytes = first.bytes;
    arguments.is_narrow = are_aligned(copies, FanOut::wide) ? 0 : 1;
    for (const gpu::Copy& copy : copies)
        arguments.to[arguments.places++] = static_cast<unsigned char*>(copy.to);
    return true;
}

}  // namespace hier
