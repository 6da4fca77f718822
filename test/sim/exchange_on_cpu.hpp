// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hier/gpu_exchange.hpp"

namespace hip_sim {

// Runs one of the kernel's thread blocks, with one thread.
void run_exchange(const hier::gpu::Exchange& arguments, unsigned block, unsigned blocks);

}  // namespace hip_sim
