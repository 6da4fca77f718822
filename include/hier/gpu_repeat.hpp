// SPDX-License-Identifier: BSD-3-Clause
// Launches of a kernel that repeat an earlier one. A program calls again and again with the same
// buffers. Then only the values change that tell of the call, and often they grow by the same step each
// time. So the kernel can count the launches and find the values itself:
//
//   launch    arguments                       values that the kernel uses     count behind it
//   first     v                               v                               1
//   later     v, s, is_repeated: always these v + count * s                   count + 1
//
// The driver starts a kernel sooner if its arguments stay. (H100, from the launch until the host sees a
// word that the kernel stores: a launch 7.6 us, one of a graph of CUDA 5.0 us, one whose arguments are set
// anew 8.2 us.)
//
// This header is compiled for devices too, so it includes nothing but types of the language.
#pragma once

#include <stdint.h>

namespace hier::gpu {

struct Repeat {
    static constexpr unsigned slots = 16;

    uint32_t slot;         // where the device counts, below `slots`. A slot belongs to one stream.
    uint32_t is_repeated;  // 0: this launch is the first one
    uint64_t step;         // of the values that tell peers of the call
    uint64_t done_step;    // of the value that tells the host of the kernel's end
};

}  // namespace hier::gpu
