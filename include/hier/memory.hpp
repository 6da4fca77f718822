// SPDX-License-Identifier: BSD-3-Clause
// What kind of memory a buffer is, and how a GPU runtime knows it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hier {

enum class MemoryKind : std::uint8_t {
    host,     // pageable, or not known to the GPU runtime
    pinned,   // of the host, page-locked by the GPU runtime
    managed,  // moved between host and device by the GPU runtime
    device,
};

// What an address belongs to.
struct Allocation {
    MemoryKind kind = MemoryKind::host;
    std::int32_t device = -1;   // of device and managed memory; -1: none, or the CPU has its pages
    std::byte* base = nullptr;  // device memory: the whole allocation
    std::size_t length = 0;     // bytes from `base`
    std::uint64_t id = 0;  // of this allocation alone, even when its address comes back; 0: none
    bool is_exportable =
        true;  // false: another library's, so the runtime cannot show it to processes
};

// Copied by a device's engines. The CPU would fetch managed memory from there page by page, as a
// device would from the CPU.
inline bool is_of_device(const Allocation& memory)
{
    return memory.kind == MemoryKind::device ||
           (memory.kind == MemoryKind::managed && memory.device >= 0);
}

}  // namespace hier
