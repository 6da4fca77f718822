// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/fan_out.hpp"

#include <algorithm>
#include <cstdint>

namespace hier {
namespace {

constexpr std::size_t max_bytes = 16 << 20;  // to all places together

bool is_aligned(const void* address)
{
    return reinterpret_cast<std::uintptr_t>(address) % gpu::FanOut::alignment == 0;
}

}  // namespace

bool as_fan_out(std::span<const gpu::Copy> copies, gpu::FanOut& arguments)
{
    if (copies.size() < 2 || copies.size() > gpu::FanOut::max_places) return false;
    const gpu::Copy& first = copies.front();
    const auto fits = [&](const gpu::Copy& copy) {
        return copy.from == first.from && copy.bytes == first.bytes && copy.rows == 1 &&
               copy.lane >= gpu::Copy::inside && is_aligned(copy.to);
    };
    if (first.bytes > max_bytes / copies.size() || !is_aligned(first.from) ||
        !std::all_of(copies.begin(), copies.end(), fits))
        return false;
    arguments = {};
    arguments.from = static_cast<const unsigned char*>(first.from);
    arguments.bytes = first.bytes;
    for (const gpu::Copy& copy : copies)
        arguments.to[arguments.places++] = static_cast<unsigned char*>(copy.to);
    return true;
}

}  // namespace hier
