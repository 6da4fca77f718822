// SPDX-License-Identifier: BSD-3-Clause
// Copies between the memory of two processes, by Cross Memory Attach (CMA). Each returns 0 or an errno.
// EFAULT: the kernel refuses the other process's memory, or ours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hier {

int write_memory(int pid, const std::byte* from, std::uint64_t to, std::size_t bytes);
int read_memory(int pid, std::byte* to, std::uint64_t from, std::size_t bytes);

// Does this error say that the other process lives, and that its memory cannot be reached?
bool is_refusal(int cause, int pid);

}  // namespace hier
