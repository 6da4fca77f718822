// Memory of the host that devices copy from and to without the CPU's help, on the NUMA node of its
// device where that is known; or, where no device is concerned, pages that are nobody else's.
#pragma once

#include <cstddef>

namespace hier {

class PinnedMemory {
public:
    PinnedMemory() = default;
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();

    // At least so many bytes; what was in it is lost when it grows. -1: for no device. False: the
    // cause has been logged.
    bool reserve(int device, std::size_t bytes);
    std::byte* data() const { return data_; }

private:
    void release();
    // These leave data_ as it was where there is nothing to choose from, or no memory.
    void reserve_near(int device, std::size_t bytes);
    void reserve_pages(std::size_t bytes);

    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    int device_ = -1;
    // Who knows of it beside us: the runtime has allocated it, or has been told of our pages.
    enum class Owner { nobody, runtime, registered } owner_ = Owner::nobody;
};

}  // namespace hier
