// SPDX-License-Identifier: BSD-3-Clause
// All kernels. hipcc and nvcc compile them into one file. The simulated runtimes compile them for the
// CPU, with thread blocks of one thread that run one after another.
#if defined(__HIP__)
#include <hip/hip_runtime.h>
#endif
#include <stdint.h>

#if defined(__CUDACC__)
#define HIER_IN_PLACE __grid_constant__  // not copied before it is indexed
#else
#define HIER_IN_PLACE
#endif
#if defined(__CUDACC__) || defined(__HIP__)
#define HIER_LET_OTHERS_RUN()
#define HIER_UNROLL _Pragma("unroll")
#define HIER_OF_DEVICE __device__  // a variable that each device has
#endif

namespace {

// What this thread has seen or stored is there for all of the device before what it stores next. On
// CUDA, whoever reads this device's memory does so through its L2 cache, and there such stores are:
// so this is also enough for a host, a NIC or a peer that reads this memory. PTX does not promise that.
// It is not enough for stores into the memory of peers. (4 H100: it takes 0.2 us, a fence of the system
// 1.6 us.)
__device__ void fence_own_device()
{
#if defined(__HIP__)
    __threadfence_system();
#else
    __threadfence();
#endif
}

// Counts a thread block that is done. True: it was the last one, and the next kernel counts anew.
// Each thread block has had a fence before.
__device__ bool is_last_block(uint32_t* blocks_done)
{
    const uint32_t blocks = gridDim.x * gridDim.y;
    if (blocks == 1) return true;
    if (atomicAdd(blocks_done, 1U) + 1 < blocks) return false;
    *blocks_done = 0;
    fence_own_device();
    return true;
}

// Two words, each of which other devices see as a whole.
struct alignas(16) Words {
    uint64_t first, second;
};

__device__ Words load(const Words* at)
{
    Words value;
#if defined(__CUDACC__)
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(value.first), "=l"(value.second)
                 : "l"(at)
                 : "memory");
#elif defined(__HIP__)
    value.first = __hip_atomic_load(&at->first, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    value.second = __hip_atomic_load(&at->second, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    value.first = __atomic_load_n(&at->first, __ATOMIC_RELAXED);
    value.second = __atomic_load_n(&at->second, __ATOMIC_RELAXED);
#endif
    return value;
}

}  // namespace

#include "gpu/kernels/exchange.hip"
#include "gpu/kernels/fan_out.hip"
