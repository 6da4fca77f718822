// SPDX-License-Identifier: BSD-3-Clause
// Memory that the processes of a node share. It lives as long as any of them maps it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hier {

class SharedMemory {
public:
    // Other processes map the memory by it.
    struct Address {
        std::array<char, 64> path{};
        std::uint64_t device = 0, inode = 0;  // of what has to be there
    };

    SharedMemory() = default;
    // Both make a new object, zeroed, with its memory reserved. Throw SetupError.
    // Anonymous: a memfd, found by /proc. It takes nothing of /dev/shm, which is 64 MB in many
    // containers and which others need, too.
    static SharedMemory create_anonymous(std::size_t bytes);
    // Under a name in /dev/shm.
    static SharedMemory create_named(std::size_t bytes);
    // Maps one that another process made. Throws SetupError.
    static SharedMemory open(const Address& address, std::size_t bytes);

    SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory();

    const Address& address() const { return address_; }
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    // Once all have mapped it: nothing stays behind, however the processes end.
    void withdraw();
    // Stays mapped until the process ends.
    void keep() { data_ = nullptr; }

private:
    void reserve_and_map(std::size_t bytes, const char* where);
    void map(std::size_t bytes);

    Address address_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    int descriptor_ = -1;    // until it is withdrawn
    bool has_name_ = false;  // that this process has made
};

}  // namespace hier
