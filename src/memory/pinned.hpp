// Memory of the host that devices copy from and to without the CPU's help.
#pragma once

#include <cstddef>

namespace hier {

class PinnedMemory {
public:
    PinnedMemory() = default;
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();

    // At least so many bytes; what was in it is lost when it grows. False: the cause has been
    // logged.
    bool reserve(int device, std::size_t bytes);
    std::byte* data() const { return data_; }

private:
    void release();

    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    int device_ = -1;
};

}  // namespace hier
