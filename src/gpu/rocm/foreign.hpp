// SPDX-License-Identifier: BSD-3-Clause
// Memory of a device that HIP has not allocated, as that of OpenMP's offloading: the layer below, HSA,
// knows it.
#pragma once

#include <cstdint>

#include "gpu/common/names.hpp"
#include "hier/memory.hpp"

namespace hier::gpu {

// The length that HIP gives to it; its base and its device are then as wrong. (From HIP 5.5 on. Up to
// 5.6, where devices reach all memory by themselves (XNACK), the host's has it too.)
inline constexpr std::size_t foreign_length = SIZE_MAX;

// Asks HSA. The memory is a device's, without a number and not to be exported, or the host's.
hipError_t inspect_foreign(const void* address, Allocation& allocation);

}  // namespace hier::gpu
