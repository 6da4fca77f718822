// SPDX-License-Identifier: BSD-3-Clause
// Device memory as files that other processes open by /proc/PID/fd.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hip_sim {

// A file that bears this process's and the memory's number; -1: none.
int make_file(std::uint64_t id, std::size_t bytes);

}  // namespace hip_sim
