// SPDX-License-Identifier: BSD-3-Clause
// Kinds of memory, and allocations of a GPU runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hier {

enum class MemoryKind : std::uint8_t {
    host,     // pageable, or not known to the GPU runtime
    pinned,   // host memory that the GPU runtime has page-locked
    managed,  // the GPU runtime moves its pages between host and device
    device,
};

// The memory that an address belongs to.
struct Allocation {
    MemoryKind kind = MemoryKind::host;
    // The device of device memory, and of managed memory whose pages are there. -1: none.
    std::int32_t device = -1;
    std::byte* base = nullptr;  // where the allocation begins; known of device memory
    std::size_t length = 0;     // of the allocation
    // Never used again, even if another allocation comes to the same address. 0: unknown.
    std::uint64_t id = 0;
    bool is_exportable = true;  // false: another library has allocated it

    bool operator==(const Allocation&) const = default;
};

// Do copy engines copy this memory? Managed memory is copied where its pages are. The other side
// would fetch them one by one.
inline bool is_of_device(const Allocation& memory)
{
    return memory.kind == MemoryKind::device ||
           (memory.kind == MemoryKind::managed && memory.device >= 0);
}

}  // namespace hier
