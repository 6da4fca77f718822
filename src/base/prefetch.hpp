// SPDX-License-Identifier: BSD-3-Clause
// Hints to the caches. No hint changes what a program does.
#pragma once

#include <cstddef>

namespace hier {

inline void prefetch_to_read(const std::byte* at) { __builtin_prefetch(at); }

// Takes the cache line away from all other cores, so that the next store to it does not wait for them. For a general
// x86-64, GCC makes a prefetch for reading of its own hint for writing.
inline void prefetch_to_write(std::byte* at)
{
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

}  // namespace hier
