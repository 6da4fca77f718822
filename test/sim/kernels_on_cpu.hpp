// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hier/gpu_exchange.hpp"
#include "hier/gpu_fan_out.hpp"

namespace hip_sim {

// The place of a thread block, or how many there are.
struct Grid {
    unsigned x, y;
};

// Runs one of the kernel's thread blocks, with one thread. The same thread runs all of a kernel.
void run_kernel(const hier::gpu::Exchange& arguments, Grid block, Grid blocks);
void run_kernel(const hier::gpu::FanOut& arguments, Grid block, Grid blocks);

}  // namespace hip_sim
