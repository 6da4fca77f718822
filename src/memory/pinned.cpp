#include "memory/pinned.hpp"

#include <sys/mman.h>

#include "gpu/runtime.hpp"
#include "topology/discovery.hpp"

namespace hier {

PinnedMemory::~PinnedMemory() { release(); }

void PinnedMemory::release()
{
    if (data_ != nullptr && is_registered_) {
        if (gpu::runtime()->unregister_host(device_, data_)) munmap(data_, bytes_);
    } else if (data_ != nullptr) {
        gpu::runtime()->free_pinned(device_, data_);
    }
    data_ = nullptr;
    is_registered_ = false;
    bytes_ = 0;
}

// A runtime's own allocations are near the calling thread (CUDA) or the device (ROCm), but nobody
// promises that.
void PinnedMemory::reserve_near(int device, std::size_t bytes)
{
    const int numa = position_of_pci(gpu::runtime()->pci_address(device)).numa;
    if (numa < 0) return;
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    // After a fork the parent's next write might move a page away from where devices see it.
    (void)madvise(pages, bytes, MADV_DONTFORK);
    if (!place_memory(pages, bytes, numa) ||
        failed(gpu::runtime()->register_host(device, pages, bytes))) {
        munmap(pages, bytes);
        return;
    }
    data_ = static_cast<std::byte*>(pages);
    is_registered_ = true;
}

bool PinnedMemory::reserve(int device, std::size_t bytes)
{
    if (bytes <= bytes_) return true;
    release();
    reserve_near(device, bytes);
    if (data_ == nullptr) data_ = gpu::runtime()->allocate_pinned(device, bytes);
    if (data_ == nullptr) return false;
    bytes_ = bytes;
    device_ = device;
    return true;
}

}  // namespace hier
