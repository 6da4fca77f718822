// SPDX-License-Identifier: BSD-3-Clause
// What a rank sends in a call: bytes that differ per rank, per call and per position.
#pragma once

#include "memory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bench {

struct Block {
    int rank;            // whose contribution it is
    std::uint64_t call;  // unique in this run
    std::size_t bytes;   // its extent: holes belong to it
    Pieces pieces = {};
};

struct Mismatch {
    std::size_t offset;  // in the block
    unsigned expected;
    unsigned found;
};

// Fills `bytes` bytes of `buffer` at `offset` with the block; its holes are poison.
void write_block(const Buffer& buffer, std::size_t offset, const Block& block);

// Fills them with a value that is wrong at every byte, so that a byte that the call leaves out
// cannot be right by chance.
void write_poison(const Buffer& buffer, std::size_t offset, const Block& block);

// The first wrong byte, if any; a hole has to be poison still.
[[nodiscard]] std::optional<Mismatch> check_block(const Buffer& buffer, std::size_t offset,
                                                  const Block& block);

}  // namespace bench
