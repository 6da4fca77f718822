// SPDX-License-Identifier: BSD-3-Clause
// The programs of a team's last calls, ready to run again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "coll/common/collective.hpp"
#include "exec/program.hpp"

namespace hier {

// How the blocks of a call compare. Equal on all ranks.
enum class BlockSizes : std::uint8_t {
    equal,
    alike,   // the largest has less than 1.5 times the average
    skewed,  // the largest has more
};
// `blocks`: by rank; empty: they are equal.
BlockSizes sizes_of(std::span<const Extent> blocks);

// The properties of a call that decide its program.
struct ProgramKey {
    std::size_t collective;
    std::size_t bytes;   // of each rank's block that the call moves, or of the largest one
    std::size_t stride;  // Call::pitch()
    std::vector<Extent> blocks = {};  // by rank; empty: they are equal
    bool in_place = false;
    bool has_bounce = false;
    bool is_on_device = false;  // either buffer
    bool publish = false;       // Binding::publish
    bool operator==(const ProgramKey&) const = default;
};

struct PreparedProgram {
    ProgramKey key;
    BlockSizes sizes;  // of key.blocks
    Choice choice;
    std::unique_ptr<Program> program;
    bool is_connected = false;  // to all that the program exchanges data with
};

class Programs {
public:
    static constexpr std::size_t max_kept = 64;
    // The memory of all programs together. A larger one is kept until the next one is made. On
    // 8,192 nodes of one rank a program has some 4 MiB.
    static constexpr std::size_t max_bytes = 64 << 20;

    // How calls of this size travelled, if one of their programs is still kept.
    const Choice* choice_of(std::size_t collective, std::size_t bytes, BlockSizes sizes) const;
    // nullptr: the program has to be made.
    PreparedProgram* find(const ProgramKey& key);
    // Drops the programs that were used least recently, if there are too many. The reference is
    // good until the next program is added.
    PreparedProgram& add(PreparedProgram made);
    // Grows when programs are dropped. As long as it is the same, every program stays where it is.
    std::uint64_t drops() const { return drops_; }

private:
    std::list<PreparedProgram> kept_;  // the one that was used last comes first
    std::size_t bytes_ = 0;            // of all of them
    std::uint64_t drops_ = 0;
};

}  // namespace hier
