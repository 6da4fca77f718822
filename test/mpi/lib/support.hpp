// SPDX-License-Identifier: BSD-3-Clause
// The header that most MPI test programs include.
#pragma once

#include "observer.hpp"
#include "pattern.hpp"
#include "session.hpp"

namespace hier_test {

inline int rank_of(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

inline int size_of(MPI_Comm comm)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

// Compares a gathered buffer with the patterns of ranks 0, 1, ... in this order.
inline bool check_blocks(Session& session, const unsigned char* received, std::size_t block_bytes,
                         int ranks, int call, const char* what)
{
    for (int rank = 0; rank < ranks; ++rank) {
        const unsigned char* block = received + static_cast<std::size_t>(rank) * block_bytes;
        const auto wrong = Pattern(rank, call).mismatch(block, block_bytes);
        if (wrong) {
            return session.check(
                false,
                "%s: call %d, %zu bytes a rank: block of rank %d wrong from byte %zu (0x%02x%s)",
                what, call, block_bytes, rank, *wrong, block[*wrong],
                block[*wrong] == poison ? ", never written" : "");
        }
    }
    return session.check(true, "-");
}

}  // namespace hier_test
