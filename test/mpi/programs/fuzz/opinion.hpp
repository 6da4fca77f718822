// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "typed_buffer.hpp"

namespace hier_test::fuzz {

// Every rank's block by MPI_Pack, MPI_Gather and MPI_Bcast, which hier does not serve, on copies in memory of the host.
// They are in the order of the ranks, packed. `block` is this rank's block in the buffer.
Content second_opinion(MPI_Comm comm, const TypedBuffer& buffer, int block, std::size_t bytes,
                       int root);

}  // namespace hier_test::fuzz
