// SPDX-License-Identifier: BSD-3-Clause
// Device memory that HIP has not allocated, such as memory of OpenMP's offloading. HSA, the layer
// below HIP, knows this memory.
#pragma once

#include <cstdint>

#include "gpu/common/names.hpp"
#include "hier/memory.hpp"

namespace hier::gpu {

// HIP gives this length to such memory, from HIP 5.5 on. The base and the device are then wrong
// too. Up to HIP 5.6 host memory has this length as well, if devices reach all memory by themselves
// (XNACK).
inline constexpr std::size_t foreign_length = SIZE_MAX;

// Asks HSA. The answer is device memory that has no id and cannot be exported, or host memory.
hipError_t inspect_foreign(const void* address, Allocation& allocation);

}  // namespace hier::gpu
