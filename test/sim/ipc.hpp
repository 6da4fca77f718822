// SPDX-License-Identifier: BSD-3-Clause
// Device memory is a file, which other processes open by /proc/PID/fd.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hip_sim {

// Makes a file whose name holds the ids of this process and of the memory. -1: there is none.
int make_file(std::uint64_t id, std::size_t bytes);

}  // namespace hip_sim
