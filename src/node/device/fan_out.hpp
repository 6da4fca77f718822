// SPDX-License-Identifier: BSD-3-Clause
// Which copies of a call go by the kernel of hier/gpu_fan_out.hpp instead of by copy engines.
//
// Copy engines start slowly, and a rank starts a copy for each peer. So for blocks of middle size one
// kernel is quicker. From some 32 MiB in all on, engines are the quicker ones. Medians in us, out of
// place, on 4 H100 behind NVSwitch; MiB of all ranks together:
//
//                      1      4     16     64
//   copy engines    22.9   33.0   58.8    154
//   kernel          20.2   27.0   54.0    165
//
// On 2 GPUs engines are as quick. The application computes during nonblocking calls, so these leave
// it the compute units.
#pragma once

#include <span>

#include "hier/gpu.hpp"

namespace hier {

// True: the copies are one block that goes to several places, and the kernel is quicker. Then
// `arguments` says what it copies.
bool as_fan_out(std::span<const gpu::Copy> copies, gpu::FanOut& arguments);

}  // namespace hier
