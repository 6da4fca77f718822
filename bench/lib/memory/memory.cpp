// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <cstring>
#include <new>

namespace bench {
namespace {

class HostMemory final : public Memory {
public:
    void* allocate(std::size_t bytes) noexcept override
    {
        // Touches all pages, so that no timed call pays for page faults. The size is never 0,
        // because a null pointer means failure.
        const std::size_t size = bytes == 0 ? 1 : bytes;
        void* pointer = ::operator new(size, alignment, std::nothrow);
        if (pointer != nullptr) {
            std::memset(pointer, 0, size);
        }
        return pointer;
    }

    void release(void* pointer) noexcept override { ::operator delete(pointer, alignment); }

    void write(void* to, const std::byte* from_host, std::size_t bytes) override
    {
        std::memcpy(to, from_host, bytes);
    }

    void read(std::byte* to_host, const void* from, std::size_t bytes) override
    {
        std::memcpy(to_host, from, bytes);
    }

private:
    static constexpr std::align_val_t alignment{4096};
};

}  // namespace

std::unique_ptr<Memory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace bench
