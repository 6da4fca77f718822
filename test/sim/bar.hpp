// SPDX-License-Identifier: BSD-3-Clause
// Device memory that the CPU reads and writes, through a large BAR. What the CPU has stored reaches
// the memory only when the CPU writes the register of the memory's device, whose address
// hipDeviceAttributeHdpMemFlushCntl tells.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hip_sim {

// Lets the CPU reach memory of the current device. `alias`: as the copy engines see it. The view at
// `base` is private and read-only.
void open_bar(std::byte* base, std::byte* alias, std::size_t pages);
void close_bar(std::byte* base);

std::uint32_t* flush_register(int device);

// Shows the CPU what engines have written beside stores that have not been flushed.
void refresh_bar();

}  // namespace hip_sim
