// SPDX-License-Identifier: BSD-3-Clause
// Stores of the CPU to device memory may wait in the CPU and on the bus.
#pragma once

#include <atomic>
#include <cstddef>

namespace hier::gpu {

// They leave the CPU before later stores. A mapping of device memory may combine them, in any order.
inline void order_stores()
{
#ifdef __x86_64__
    __builtin_ia32_sfence();
#endif
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

// They leave the bus: no load from the device passes a store before it. `at`: any address of the mapping.
inline void wait_for_stores(const std::byte* at)
{
    std::atomic_thread_fence(std::memory_order_seq_cst);
    (void)*static_cast<const volatile std::byte*>(at);
}

}  // namespace hier::gpu
