// SPDX-License-Identifier: BSD-3-Clause
// Memory of the bench's buffers. The timed loop uses pointers only. All other code looks into a
// buffer through read() and write(), because the CPU may not reach it.
#pragma once

#include "bench/lib/options/options.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace bench {

class Memory {
public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    virtual ~Memory() = default;

    // nullptr means too little memory; 0 bytes do not give nullptr. The caller gives the pointer to
    // release(), which takes nullptr as well.
    [[nodiscard]] virtual void* allocate(std::size_t bytes) noexcept = 0;
    virtual void release(void* pointer) noexcept = 0;

    // Blocking copies between this memory and the host's.
    virtual void write(void* to, const std::byte* from_host, std::size_t bytes) = 0;
    virtual void read(std::byte* to_host, const void* from, std::size_t bytes) = 0;
    // Bytes to copy at a time, a multiple of 8. Copies that cost microseconds should be larger.
    [[nodiscard]] virtual std::size_t window_bytes() const { return std::size_t{64} << 10; }
};

[[nodiscard]] std::unique_ptr<Memory> make_host_memory();

struct Memories {
    std::unique_ptr<Memory> send;
    std::unique_ptr<Memory> receive;
};

// One allocation; data() is nullptr if the allocation failed.
class Buffer {
public:
    Buffer(Memory& memory, std::size_t bytes)
        : memory_(memory), bytes_(bytes), data_(memory.allocate(bytes))
    {
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { memory_.release(data_); }

    [[nodiscard]] void* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] void* at(std::size_t offset) const noexcept
    {
        return static_cast<std::byte*>(data_) + offset;
    }
    [[nodiscard]] Memory& memory() const noexcept { return memory_; }

private:
    Memory& memory_;
    std::size_t bytes_;
    void* data_;
};

}  // namespace bench
