// Where the buffers of the benchmark live. The seam for device memory: the timed loop sees
// pointers only, and everything that looks into a buffer goes through read() and write().
#pragma once

#include "options.hpp"

#include <cstddef>
#include <memory>

namespace bench {

class Memory {
public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    virtual ~Memory() = default;

    // nullptr when there is not enough; the caller gives the pointer back with release().
    [[nodiscard]] virtual void* allocate(std::size_t bytes) noexcept = 0;
    virtual void release(void* pointer) noexcept = 0;

    // Blocking copies between this memory and the host's.
    virtual void write(void* to, const std::byte* from_host, std::size_t bytes) = 0;
    virtual void read(std::byte* to_host, const void* from, std::size_t bytes) = 0;
};

// nullptr when the kind is not built in.
[[nodiscard]] std::unique_ptr<Memory> make_memory(MemoryKind kind);

// One allocation; data() is nullptr when it failed.
class Buffer {
public:
    Buffer(Memory& memory, std::size_t bytes) : memory_(memory), data_(memory.allocate(bytes)) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { memory_.release(data_); }

    [[nodiscard]] void* data() const noexcept { return data_; }
    [[nodiscard]] void* at(std::size_t offset) const noexcept
    {
        return static_cast<std::byte*>(data_) + offset;
    }
    [[nodiscard]] Memory& memory() const noexcept { return memory_; }

private:
    Memory& memory_;
    void* data_;
};

}  // namespace bench
