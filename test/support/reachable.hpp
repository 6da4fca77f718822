// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/mman.h>

#include "hier/hier.h"

namespace hier::test {

// A page of the host's memory that a look has to find. What the program has itself needs none.
inline void* host_page()
{
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : page;
}

// Does the CPU reach this memory, as far as the core knows?
inline bool is_reachable(const void* address)
{
    hier_memory memory;
    hier_memory* const found[] = {&memory};
    hier_memory_inspect(1, &address, found);
    return memory.is_reachable != 0;
}

}  // namespace hier::test
