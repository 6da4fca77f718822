// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hier/hier.h"

namespace hier::test {

// Does the CPU reach this memory, as far as the core knows?
inline bool is_reachable(const void* address)
{
    hier_memory memory;
    hier_memory* const found[] = {&memory};
    hier_memory_inspect(1, &address, found);
    return memory.is_reachable != 0;
}

}  // namespace hier::test
