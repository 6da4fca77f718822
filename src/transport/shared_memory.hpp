// A POSIX shared-memory object that lives as long as somebody maps it.
#pragma once

#include <cstddef>
#include <string>

namespace hier {

class SharedMemory {
public:
    SharedMemory() = default;
    // Makes a new object under a name of its own, zeroed, with its memory reserved. Throws
    // SetupError.
    static SharedMemory create(std::size_t bytes);
    // Maps one that another process made.
    static SharedMemory open(const std::string& name, std::size_t bytes);

    SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory();

    const std::string& name() const { return name_; }
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    // Once all have mapped it: nothing stays behind, however the processes end.
    void unlink();
    // Stays mapped until the process ends.
    void keep() { data_ = nullptr; }

private:
    std::string name_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    bool linked_ = false;  // by this process
};

}  // namespace hier
