// SPDX-License-Identifier: BSD-3-Clause
// Memory that the processes of a node share. The memory lives as long as any process maps it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hier {

class SharedMemory {
public:
    // By the address other processes map the memory.
    struct Address {
        std::array<char, 64> path{};
        std::uint64_t device = 0, inode = 0;  // of the file that the path must lead to
    };

    SharedMemory() = default;
    // Both functions make new memory, zeroed and reserved. They throw SetupError.
    //
    // A memfd, which other processes find by /proc. A memfd takes nothing of /dev/shm, which has
    // only 64 MB in many containers and which others need too.
    static SharedMemory create_anonymous(std::size_t bytes);
    // A name in /dev/shm.
    static SharedMemory create_named(std::size_t bytes);
    // Both functions map memory that another process has made. They throw SetupError.
    static SharedMemory open(const Address& address, std::size_t bytes)
    {
        return open(address, bytes, true);
    }
    static SharedMemory open_to_read(const Address& address, std::size_t bytes)
    {
        return open(address, bytes, false);
    }

    SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory();

    const Address& address() const { return address_; }
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    int descriptor() const { return descriptor_; }  // -1 after withdraw()
    // Removes the name. Call this when all processes have mapped the memory. Then nothing stays
    // behind, however the processes end.
    void withdraw();
    // Leaves the memory mapped until the process ends.
    void keep() { data_ = nullptr; }

private:
    static SharedMemory open(const Address& address, std::size_t bytes, bool may_write);
    void reserve_and_map(std::size_t bytes, const char* where);
    void map(std::size_t bytes, bool may_write = true);

    Address address_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    int descriptor_ = -1;    // until withdraw()
    bool has_name_ = false;  // this process has made a name in /dev/shm
};

}  // namespace hier
