// SPDX-License-Identifier: BSD-3-Clause
// Host memory that is kept from call to call and grows. If the memory is pinned, devices copy from
// and to it without the CPU's help. Pinned memory lies on the NUMA node of its device, if that node
// is known.
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

    // Returns at least so many bytes, page-aligned. When the memory grows, its contents are lost.
    // The memory is for copies of `device`; -1: for no device. nullptr: the cause has been logged.
    //
    // If nothing can be pinned for the device, the memory is pageable, and copies are slower. To
    // fail instead would be worse, because other ranks may be in the call already.
    //
    // A pinned block that is outgrown stays until the end. To give it back would wait for the
    // application's kernels (CUDA), and one of these may wait for a rank that is in this call. That
    // is why memory grows to at least twice its size. A block of more than `max_outgrown` bytes
    // does not stay, because the host might run out of memory.
    std::byte* reserve(int device, std::size_t bytes);
    std::byte* data() const { return current_.data; }
    bool is_pinned() const { return current_.owner != Owner::nobody; }

private:
    static constexpr std::size_t max_outgrown = std::size_t{128} << 20;
    // Does the GPU runtime know the block? Either the runtime has allocated it, or our pages have
    // been registered. Pageable memory belongs to nobody.
    enum class Owner { nobody, runtime, registered };
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        int device = -1;
        Owner owner = Owner::nobody;
    };

    static void release(const Block& block);
    // A block without data: the place of the device is unknown, or there is no memory.
    static Block reserve_near(int device, std::size_t bytes);
    static Block reserve_by_runtime(int device, std::size_t bytes);
    static Block reserve_pages(int device, std::size_t bytes);
    std::byte* reserve_pinned(int device, std::size_t bytes);
    void replace(const Block& block);

    Block current_;
    std::vector<Block> outgrown_;
};

}  // namespace hier
