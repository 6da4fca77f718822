// SPDX-License-Identifier: BSD-3-Clause
// The product's kernels, compiled for the CPU. What a device's compiler provides is here.
#include "kernels_on_cpu.hpp"

#include <sched.h>

namespace {

thread_local hip_sim::Grid blockIdx{0, 0}, gridDim{1, 1};
constexpr hip_sim::Grid threadIdx{0, 0}, blockDim{1, 1};

void __syncthreads() {}  // of one thread
void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence() { __threadfence_system(); }
uint32_t atomicAdd(uint32_t* at, uint32_t value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

}  // namespace

#define __global__
#define __device__
#define HIER_LET_OTHERS_RUN() sched_yield()
#define HIER_UNROLL
#define HIER_OF_DEVICE thread_local
#include "src/gpu/kernels/kernels.hip"

namespace {

void begin_block(hip_sim::Grid block, hip_sim::Grid blocks)
{
    blockIdx = block;
    gridDim = blocks;
}

}  // namespace

void hip_sim::run_kernel(const hier::gpu::Exchange& arguments, Grid block, Grid blocks)
{
    begin_block(block, blocks);
    hier_exchange(arguments);
}

void hip_sim::run_kernel(const hier::gpu::FanOut& arguments, Grid block, Grid blocks)
{
    begin_block(block, blocks);
    hier_fan_out(arguments);
}
