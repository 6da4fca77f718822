// SPDX-License-Identifier: BSD-3-Clause
#include "pattern.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace bench {
namespace {

// Host memory for a part of a shard. The buffer itself may be in the memory of a GPU.
using Window = std::vector<std::byte>;

std::size_t window_bytes(const Buffer& buffer, const Shard& shard)
{
    const std::size_t words = (shard.bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    return std::min(buffer.memory().window_bytes(), words * sizeof(std::uint64_t));
}

// The finaliser of splitmix64: every bit of the input changes half the bits of the output.
constexpr std::uint64_t mix(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

enum class Fill { shard, poison };

// Bytes [start, start + bytes) of the shard. `start` is a multiple of the window, and so of a word.
void generate(Window& window, const Shard& shard, std::size_t start, std::size_t bytes, Fill fill)
{
    const std::uint64_t flip = fill == Fill::poison ? ~std::uint64_t{0} : 0;
    const std::uint64_t seed = mix(mix(shard.call) + static_cast<std::uint64_t>(shard.rank));
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = mix(seed + (start + at) / sizeof(std::uint64_t)) ^ flip;
        std::memcpy(window.data() + at, &word, sizeof word);
    }
    const bool has_holes = fill == Fill::shard && !shard.blocks.is_whole();
    for (std::size_t at = 0; has_holes && at < bytes; ++at) {
        window[at] = shard.blocks.is_hole(start + at) ? ~window[at] : window[at];
    }
}

void write_generated(const Buffer& buffer, std::size_t offset, const Shard& shard, Fill fill)
{
    Window window(window_bytes(buffer, shard));
    for (std::size_t start = 0; start < shard.bytes; start += window.size()) {
        const std::size_t bytes = std::min(window.size(), shard.bytes - start);
        generate(window, shard, start, bytes, fill);
        buffer.memory().write(buffer.at(offset + start), window.data(), bytes);
    }
}

}  // namespace

void write_shard(const Buffer& buffer, std::size_t offset, const Shard& shard)
{
    write_generated(buffer, offset, shard, Fill::shard);
}

void write_poison(const Buffer& buffer, std::size_t offset, const Shard& shard)
{
    write_generated(buffer, offset, shard, Fill::poison);
}

std::optional<Mismatch> check_shard(const Buffer& buffer, std::size_t offset, const Shard& shard)
{
    Window expected(window_bytes(buffer, shard));
    Window found(expected.size());
    for (std::size_t start = 0; start < shard.bytes; start += expected.size()) {
        const std::size_t bytes = std::min(expected.size(), shard.bytes - start);
        generate(expected, shard, start, bytes, Fill::shard);
        buffer.memory().read(found.data(), buffer.at(offset + start), bytes);
        const auto end = expected.begin() + static_cast<std::ptrdiff_t>(bytes);
        const auto [right, wrong] = std::mismatch(expected.begin(), end, found.begin());
        if (right != end) {
            return Mismatch{start + static_cast<std::size_t>(right - expected.begin()),
                            std::to_integer<unsigned>(*right), std::to_integer<unsigned>(*wrong)};
        }
    }
    return std::nullopt;
}

}  // namespace bench
