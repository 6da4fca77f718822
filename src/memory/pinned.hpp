// Memory of the host that devices copy from and to without the CPU's help, on the NUMA node of its
// device where that is known; or, where no device is concerned, pages that are nobody else's.
#pragma once

#include <cstddef>
#include <vector>

namespace hier {

class PinnedMemory {
public:
    PinnedMemory() = default;
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();

    // At least so many bytes; what was in it is lost when it grows. -1: for no device. False: the
    // cause has been logged. What it has outgrown stays until the end: to give pinned memory back is
    // to wait for the application's kernels (CUDA), and one of them may wait for a rank that is in this
    // call. So it grows to twice its size at least. (More than HIER_MOST_OUTGROWN bytes do not stay.)
    bool reserve(int device, std::size_t bytes);
    std::byte* data() const { return current_.data; }

private:
    // Who knows of it beside us: the runtime has allocated it, or has been told of our pages.
    enum class Owner { nobody, runtime, registered };
    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        int device = -1;
        Owner owner = Owner::nobody;
    };

    static void release(const Block& block);
    // No data: there is nothing to choose from, or no memory.
    static Block reserve_near(int device, std::size_t bytes);
    static Block reserve_by_runtime(int device, std::size_t bytes);
    static Block reserve_pages(std::size_t bytes);

    Block current_;
    std::vector<Block> outgrown_;
};

}  // namespace hier
