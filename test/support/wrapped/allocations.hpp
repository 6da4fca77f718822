// SPDX-License-Identifier: BSD-3-Clause
// operator new(std::size_t) of the program's objects: counted, and refused where a test says so.
// UCX's own allocations are not among them.
#pragma once

#include <atomic>
#include <cstddef>

namespace hier::test {

extern std::atomic<std::size_t> allocations;
extern std::size_t refused_bytes;   // blocks of this size; 0: none
extern std::size_t refused_number;  // this one from now, from 1; 0: none
extern std::size_t refusals;

}  // namespace hier::test
