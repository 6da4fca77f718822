// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "typed_buffer.hpp"

namespace hier_test::fuzz {

// Half of the calls on a communicator ask a second opinion, if all ranks together send less than
// this.
inline constexpr std::size_t max_opinion_bytes = 64 * 1024;

// Gathers every rank's block by MPI_Pack, MPI_Gatherv and MPI_Bcast, which hier does not serve,
// from copies in memory of the host. `sizes` has the bytes of all ranks, and `block` is this rank's
// block in the buffer. Returns what differs from the patterns that the ranks send in this call, or
// "".
std::string second_opinion(MPI_Comm comm, const TypedBuffer& buffer, int block,
                           const std::vector<std::size_t>& sizes, int root, int call);

}  // namespace hier_test::fuzz
