// SPDX-License-Identifier: BSD-3-Clause
#include "memory/readable.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace hier {

// The kernel reads the signal set, which is one word, before it refuses the first argument. abseil
// does the same. process_vm_readv would do too, but may be forbidden.
bool is_readable(const void* address)
{
    constexpr std::uintptr_t word = sizeof(std::uint64_t);
    const auto aligned = reinterpret_cast<std::uintptr_t>(address) / word * word;
    return syscall(SYS_rt_sigprocmask, ~0, aligned, nullptr, word) == 0 || errno != EFAULT;
}

}  // namespace hier
