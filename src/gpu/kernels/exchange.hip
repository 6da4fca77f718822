// SPDX-License-Identifier: BSD-3-Clause
// The kernel of hier/gpu_exchange.hpp. Thread blocks may run one after another, because a thread block
// waits only for words that the same thread blocks of the peers store before they wait.
#include "hier/gpu_exchange.hpp"

#if defined(__CUDACC__)
#define HIER_BOUNDS                                                                                \
    __launch_bounds__(hier::gpu::exchange_threads, hier::gpu::exchange_blocks_of_unit)
#elif defined(__HIP__)
// The second number is of waves for a SIMD: those of three thread blocks on four SIMDs.
#define HIER_BOUNDS __launch_bounds__(hier::gpu::exchange_threads, 6)
#else
#define HIER_BOUNDS
#endif

namespace {

using hier::gpu::Exchange;

// The value at the end of the last kernel. Kernels run one at a time, because they are in one stream.
HIER_OF_DEVICE uint64_t exchanges_done;

__device__ void store(Words* at, Words value)
{
#if defined(__CUDACC__)
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(value.first),
                 "l"(value.second)
                 : "memory");
#elif defined(__HIP__)
    __hip_atomic_store(&at->first, value.first, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    __hip_atomic_store(&at->second, value.second, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    __atomic_store_n(&at->first, value.first, __ATOMIC_RELAXED);
    __atomic_store_n(&at->second, value.second, __ATOMIC_RELAXED);
#endif
}

__device__ uint32_t load(const uint32_t* at)
{
#if defined(__HIP__)
    return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#elif defined(__CUDACC__)
    return *reinterpret_cast<const volatile uint32_t*>(at);
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

// To the host.
__device__ void store(uint64_t* at, uint64_t value)
{
#if defined(__HIP__)
    __hip_atomic_store(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#elif defined(__CUDACC__)
    *reinterpret_cast<volatile uint64_t*>(at) = value;
#else
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
#endif
}

__device__ bool is_whole(const unsigned char* at, uint32_t left)
{
    return left >= 4 && (reinterpret_cast<uintptr_t>(at) & 3) == 0;
}

// Four bytes of a block, or what is left of it.
__device__ uint32_t read_bytes(const unsigned char* at, uint32_t left)
{
    if (is_whole(at, left)) return *reinterpret_cast<const uint32_t*>(at);
    uint32_t value = 0;
    for (uint32_t i = 0; i < left && i < 4; i++) value |= static_cast<uint32_t>(at[i]) << 8 * i;
    return value;
}

__device__ void write_bytes(unsigned char* at, uint32_t left, uint32_t value)
{
    if (is_whole(at, left)) {
        *reinterpret_cast<uint32_t*>(at) = value;
        return;
    }
    for (uint32_t i = 0; i < left && i < 4; i++) at[i] = static_cast<unsigned char>(value >> 8 * i);
}

// Eight bytes of the block, the i-th.
__device__ void push(const Exchange& e, uint32_t flag, uint32_t i)
{
    const uint32_t left = e.bytes - 8 * i;
    const uint32_t more = left > 4 ? left - 4 : 0;
    const unsigned char* const from = e.block + 8 * i;
    const uint32_t values[] = {read_bytes(from, left), read_bytes(from + 4, more)};
    const uint64_t upper = static_cast<uint64_t>(flag) << 32;
    const Words words = {upper | values[0], upper | values[1]};
    for (uint32_t k = 1; k < e.ranks; k++)
        store(reinterpret_cast<Words*>(e.to[(e.rank + k) % e.ranks]) + i, words);
    unsigned char* const own = e.into[e.rank];
    if (own == e.block) return;
    write_bytes(own + 8 * i, left, values[0]);
    write_bytes(own + 8 * i + 4, more, values[1]);
}

// Looks at the words of several peers at a time, because each look takes most of a microsecond.
// False: the kernel has to end.
__device__ bool take(const Exchange& e, uint32_t flag, uint32_t i)
{
    constexpr uint32_t together = 4;
    constexpr unsigned looks_per_stop = 256;
    const uint32_t left = e.bytes - 8 * i;
    const uint32_t more = left > 4 ? left - 4 : 0;
    for (uint32_t first = 1; first < e.ranks; first += together) {
        const uint32_t count = e.ranks - first < together ? e.ranks - first : together;
        Words words[together];
        unsigned looks = 0;
        for (bool is_there = false; !is_there;) {
            is_there = true;
            HIER_UNROLL
            for (uint32_t p = 0; p < together; p++) {
                const uint64_t* const from = e.zone + (e.rank + first + p) % e.ranks * e.stride;
                if (p < count) words[p] = load(reinterpret_cast<const Words*>(from) + i);
            }
            HIER_UNROLL
            for (uint32_t p = 0; p < together; p++) {
                if (p < count && (words[p].first >> 32 != flag || words[p].second >> 32 != flag))
                    is_there = false;
            }
            if (is_there) break;
            if (++looks % looks_per_stop == 0 && load(e.stop) != 0) return false;
            HIER_LET_OTHERS_RUN();
        }
        HIER_UNROLL
        for (uint32_t p = 0; p < together; p++) {
            if (p >= count) continue;
            unsigned char* const to = e.into[(e.rank + first + p) % e.ranks] + 8 * i;
            write_bytes(to, left, static_cast<uint32_t>(words[p].first));
            write_bytes(to + 4, more, static_cast<uint32_t>(words[p].second));
        }
    }
    return true;
}

}  // namespace

extern "C" __global__ void hier_exchange(const HIER_IN_PLACE Exchange e);

extern "C" __global__ void HIER_BOUNDS hier_exchange(const HIER_IN_PLACE Exchange e)
{
    // All threads read these before the last thread block counts.
    const uint32_t flag = e.is_counted != 0 ? e.control->flag + 1 : e.flag;
    const uint64_t done = e.is_counted != 0 ? exchanges_done + 1 : e.done_value;
    const uint32_t begin = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t step = gridDim.x * blockDim.x;
    const uint32_t count = (e.bytes + 7) / 8;
    for (uint32_t i = begin; i < count; i += step) push(e, flag, i);
    for (uint32_t i = begin; i < count; i += step) {
        if (!take(e, flag, i)) break;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    fence_own_device();  // the receive buffer; the words in peers' zones tell of themselves
    if (!is_last_block(&e.control->ended)) return;
    e.control->flag = flag;
    exchanges_done = done;
    if (e.done != nullptr) store(e.done, done);
}
