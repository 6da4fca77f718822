// SPDX-License-Identifier: BSD-3-Clause
// Where the buffers of the benchmark live. The seam for GPU memory: the timed loop sees pointers
// only, and everything that looks into a buffer goes through read() and write().
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

    // nullptr when there is not enough; the caller gives the pointer back with release(), which
    // takes nullptr, too. Of size 0 it is no nullptr.
    [[nodiscard]] virtual void* allocate(std::size_t bytes) noexcept = 0;
    virtual void release(void* pointer) noexcept = 0;

    // Blocking copies between this memory and the host's.
    virtual void write(void* to, const std::byte* from_host, std::size_t bytes) = 0;
    virtual void read(std::byte* to_host, const void* from, std::size_t bytes) = 0;
    // How much to copy at a time: what costs microseconds a copy wants larger ones. A multiple of 8.
    [[nodiscard]] virtual std::size_t window_bytes() const { return std::size_t{64} << 10; }
};

[[nodiscard]] std::unique_ptr<Memory> make_host_memory();

// What one rank uses.
struct Memories {
    std::unique_ptr<Memory> send;
    std::unique_ptr<Memory> receive;
};

// One allocation; data() is nullptr when it failed.
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
