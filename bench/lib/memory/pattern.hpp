// SPDX-License-Identifier: BSD-3-Clause
// The bytes that a rank sends in a call. They differ by rank, call and position.
#pragma once

#include "memory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bench {

struct Shard {
    int rank;            // that contributes it
    std::uint64_t call;  // unique in this run
    std::size_t bytes;   // with its holes
    Blocks blocks = {};
};

struct Mismatch {
    std::size_t offset;  // in the shard
    unsigned expected;
    unsigned found;
};

// Writes the shard into `buffer` at `offset`. Its holes get poison.
void write_shard(const Buffer& buffer, std::size_t offset, const Shard& shard);

// Fills the same bytes with poison, a value that is wrong at every byte. So a byte that the call
// leaves out cannot be right by chance.
void write_poison(const Buffer& buffer, std::size_t offset, const Shard& shard);

// The first wrong byte, if any. Holes must still be poison.
[[nodiscard]] std::optional<Mismatch> check_shard(const Buffer& buffer, std::size_t offset,
                                                  const Shard& shard);

}  // namespace bench
