// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "random.hpp"

namespace hier_test::fuzz {

// The bytes of a rank: none, one, odd numbers, powers of two and their neighbours, and what lies around the sizes at which
// hier or Open MPI change their way. Most are small. `ranks` is for thresholds that count the bytes of all ranks.
std::size_t draw_bytes(Random& random, int ranks, std::size_t largest);

}  // namespace hier_test::fuzz
