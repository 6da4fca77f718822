// SPDX-License-Identifier: BSD-3-Clause
// The memory that hier keeps on a rank, by the sizes of its structures.
#pragma once

#include <cstddef>

#include "coll/allgather/cost.hpp"
#include "options.hpp"

namespace bench::simulator {

struct Footprint {
    std::size_t endpoints = 0;      // connections on the rail; UCX's memory for them is not counted
    std::size_t board = 0;          // bytes, registered
    std::size_t segment = 0;        // bytes, shared by the ranks of the node
    std::size_t program = 0;        // bytes of one prepared plan, and of the executor that runs it
    std::size_t topology = 0;       // bytes
    std::size_t announcements = 0;  // small messages that a rank sends on the rail in a call
};

// The footprint of rank 0.
[[nodiscard]] Footprint footprint_of(const Options& options, std::size_t bytes,
                                     const hier::Choice& choice);

}  // namespace bench::simulator
