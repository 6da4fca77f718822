// SPDX-License-Identifier: BSD-3-Clause
// What each rank sends in an MPI_Allgatherv, and where the blocks lie in a receive buffer.
#pragma once

#include "types.hpp"

#include <vector>

namespace hier_test::fuzz {

// A rank sends some quanta. A quantum is a number of the signature's units.
struct Shares {
    const char* name = "";
    std::size_t quantum = 1;
    std::vector<std::size_t> quanta;  // of each rank

    std::size_t units_of(int rank) const
    {
        return quantum * quanta[static_cast<std::size_t>(rank)];
    }
    std::size_t total() const;  // quanta of all ranks
};

// Shares of all kinds: equal ones, random ones, one large share beside empty ones, shares that grow
// from rank to rank, some or all empty. A rank has so many units on average, more or less, and
// never more than `most`.
Shares draw_shares(Random& common, int ranks, std::size_t units, std::size_t most);

// The most items of a form that draw_blocks() spreads over a buffer, for draw_form().
int room_for(const Shares& shares);

// Blocks of shares[r] * form.items items: in any order, with or without gaps, from any displacement
// on. Empty blocks may be anywhere, far outside the buffer, too.
Blocks draw_blocks(Random& random, const Shares& shares, const Form& form);

}  // namespace hier_test::fuzz
