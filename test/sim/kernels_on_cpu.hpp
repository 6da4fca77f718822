// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hier/gpu_exchange.hpp"
#include "hier/gpu_fan_out.hpp"

namespace hip_sim {

// Runs one of the kernel's thread blocks, with one thread. The same thread runs all of a kernel.
void run_kernel(const hier::gpu::Exchange& arguments, unsigned block, unsigned blocks);
void run_kernel(const hier::gpu::FanOut& arguments, unsigned block, unsigned blocks);

}  // namespace hip_sim
