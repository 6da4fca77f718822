// SPDX-License-Identifier: BSD-3-Clause
// operator new(std::size_t) of the program's objects. It counts, and refuses if a test says so.
// UCX's own allocations do not come here.
#pragma once

#include <atomic>
#include <cstddef>

namespace hier::test {

extern std::atomic<std::size_t> allocations;
extern std::size_t refused_bytes;   // blocks of this size; 0: none
extern std::size_t refused_number;  // the n-th allocation from now, from 1; 0: none
extern std::size_t refusals;

}  // namespace hier::test
