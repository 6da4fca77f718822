// SPDX-License-Identifier: BSD-3-Clause
// Memory of the host that is kept from call to call and grows. Devices copy from and to it without the
// CPU's help where it is pinned, on the NUMA node of its device where that is known.
#pragma once

#include <cstddef>
#include <vector>

namespace hier {

class HostMemory {
public:
    HostMemory() = default;
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();

    // At least so many bytes, page-aligned; what was in it is lost when it grows. For a device, or (-1)
    // for none. Where pinned memory is wanted and there is none, pageable memory does, more slowly: the
    // other ranks may be in the call already. nullptr: the cause has been logged.
    //
    // Pinned memory that is outgrown stays until the end: to give it back is to wait for the
    // application's kernels (CUDA), and one of them may wait for a rank that is in this call. So it
    // grows to twice its size at least. More than `max_outgrown` bytes do not stay: a host may not have
    // enough.
    std::byte* reserve(int device, std::size_t bytes);
    std::byte* data() const { return current_.data; }
    bool is_pinned() const { return current_.owner != Owner::nobody; }

private:
    static constexpr std::size_t max_outgrown = std::size_t{128} << 20;
    // The runtime knows of it as well: it has allocated it, or has been told of our pages.
    enum class Owner { nobody, runtime, registered };
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        int device = -1;
        Owner owner = Owner::nobody;
    };

    static void release(const Block& block);
    // No data: there is nothing to choose from, or no memory.
    static Block reserve_near(int device, std::size_t bytes);
    static Block reserve_by_runtime(int device, std::size_t bytes);
    static Block reserve_pages(int device, std::size_t bytes);
    std::byte* reserve_pinned(int device, std::size_t bytes);
    void replace(const Block& block);

    Block current_;
    std::vector<Block> outgrown_;
};

}  // namespace hier
