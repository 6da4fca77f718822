// Memory of the host that devices copy from and to without the CPU's help, on the NUMA node of its
// device where that is known.
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
    // Leaves data_ as it was where there is nothing to choose from.
    void reserve_near(int device, std::size_t bytes);

    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    int device_ = -1;
    bool is_registered_ = false;  // our own pages, else the runtime's
};

}  // namespace hier
