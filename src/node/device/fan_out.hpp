// SPDX-License-Identifier: BSD-3-Clause
// Which copies of a call go by the kernel of hier/gpu_fan_out.hpp instead of by copy engines.
//
// Copy engines start slowly, and a rank starts a copy for each peer. So one kernel is quicker:
//
// - for blocks of middle size, if each rank has a GPU of its own and its compute units are free
//   (compute_units.hpp). The application may compute during nonblocking calls, so those of more than
//   1 MiB in all leave it the compute units.
// - for all blocks, if ranks share GPUs under MPS. A copy inside a device takes compute units anyway.
// - for small chunks, on several nodes. There one chunk follows the other, and engines hide the start
//   of a copy behind the bytes of another one. n copies of c bytes take max(n (l + c/b) / 2, n c/b),
//   and a kernel k + n c/b, where all chunks that wait share k. On H200 l is 2 us, and b is 393 GB/s.
//   On H100 k is 6.1 us. So the largest chunk grows with the peers. In bench/simulate, on 2 to 16 nodes,
//   larger chunks by kernels lose more than they gain: above 128 KiB with 4 GPUs, above 256 KiB with 8.
//
// Medians in us, out of place. 4 H100 behind NVSwitch, by MiB of all ranks together:
//
//                      1      4     16     64
//   copy engines    24.7   32.8   58.3    158
//   kernel          19.3   25.8   55.2    166
//
// 2 H200, in place, by bytes a rank. The kernel is launched as a graph (src/gpu/common/repeats.hpp):
//
//                  64 KiB  256 KiB   1 MiB   4 MiB   8 MiB  16 MiB
//   copy engines     10.2     12.1    14.4    22.2    32.1    54.6
//   kernel            8.8      9.4    11.4    19.9    31.2    54.4
//
// Ranks that share an H100 under MPS, by bytes a rank; copy engines / kernel. It had a thread block for
// each 32 KiB:
//
//                  256 KiB       1 MiB     16 MiB
//    2 ranks       24 / 16     21 / 16    60 /  51
//    4 ranks       31 / 20     43 / 19   199 / 139
//    8 ranks       62 / 29    165 / 44   768 / 465
//   16 ranks      520 / 56    608 / 124 3102 / 1706
//
// In the first column up to 8 ranks used the kernel of small blocks in place of copy engines.
//
// Two ranks that share an H200 under MPS, in place, by bytes a rank; means of the medians of two runs:
//
//                  64 KiB  256 KiB   1 MiB   4 MiB  16 MiB
//   copy engines     15.6     16.0    15.8    17.1    28.7
//   kernel           10.4     10.1    10.1    12.4    26.8
#pragma once

#include <span>

#include "hier/gpu.hpp"

namespace hier {

// blocks_to_one: middle blocks on a node of two ranks, where a block in place goes to one place alone. all_blocks allows
// that, too.
enum class FanOutUse : std::uint8_t { never, chunks, middle_blocks, blocks_to_one, all_blocks };
constexpr std::size_t max_chunk_by_kernel(std::size_t peers) { return (32 << 10) * (1 + peers); }

// Do both copy the same block?
inline bool is_same_block(const gpu::Copy& a, const gpu::Copy& b)
{
    return a.from == b.from && a.bytes == b.bytes && a.rows == 1 && b.rows == 1;
}

// Are the copies one block, and is the kernel quicker?
bool is_fan_out(std::span<const gpu::Copy> block, FanOutUse use);
// Adds such a block to those of a kernel, which has zeros before its first one. False: there is no room.
bool add_block(std::span<const gpu::Copy> block, gpu::FanOut& arguments);

}  // namespace hier
