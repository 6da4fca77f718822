// SPDX-License-Identifier: BSD-3-Clause
// Counts what our objects allocate, and refuses what a test does not want them to get: operator
// new(std::size_t) is wrapped, whose linker flag is in the build's list. UCX's own allocations are
// not ours to count.
#pragma once

#include <cstddef>

namespace hier::test {

extern std::size_t allocations;
extern std::size_t refused_bytes;   // blocks of this size; 0: none
extern std::size_t refused_number;  // this one from now, from 1; 0: none
extern std::size_t refusals;

}  // namespace hier::test
