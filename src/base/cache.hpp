// SPDX-License-Identifier: BSD-3-Clause
// The caches of the cores.
#pragma once

#include <cstddef>

namespace hier {

// Bytes that move between cores in one piece. Processors that move other sizes are only slower.
inline constexpr std::size_t cache_line = 64;

// The next two are hints. They change nothing but the time.
inline void prefetch_to_read(const std::byte* at) { __builtin_prefetch(at); }

// Takes the line away from all other cores, so that the next store does not wait for them. Without -mprfchw, GCC
// makes a prefetch for reading of __builtin_prefetch(at, 1). The first x86-64 processors of Intel do not know the
// instruction. Those of the last ten years do, and those between take it for a no-op.
inline void prefetch_to_write(std::byte* at)
{
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

}  // namespace hier
