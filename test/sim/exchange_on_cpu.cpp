// SPDX-License-Identifier: BSD-3-Clause
// The product's kernel, compiled for the CPU. What a device's compiler provides is here.
#include "exchange_on_cpu.hpp"

#include <sched.h>

namespace {

struct Dimension {
    unsigned x;
};
thread_local Dimension blockIdx{0}, gridDim{1};
constexpr Dimension threadIdx{0}, blockDim{1};

void __syncthreads() {}  // of one thread
void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
uint32_t atomicAdd(uint32_t* at, uint32_t value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

}  // namespace

#define __global__
#define __device__
#define HIER_LET_OTHERS_RUN() sched_yield()
#define HIER_UNROLL
#include "src/gpu/kernels/exchange.hip"

void hip_sim::run_exchange(const hier::gpu::Exchange& arguments, unsigned block, unsigned blocks)
{
    blockIdx.x = block;
    gridDim.x = blocks;
    hier_exchange(arguments);
}
