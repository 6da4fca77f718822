// SPDX-License-Identifier: BSD-3-Clause
// What CUDA's graphs need of the simulated kernels.
#pragma once

#include <cstddef>

namespace hip_sim {

// The bytes of the kernel's only argument.
std::size_t argument_bytes(const void* function);
void count_launch_by_graph();

}  // namespace hip_sim
