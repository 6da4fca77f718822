#include "memory/pinned.hpp"

#include <sys/mman.h>

#include "gpu/runtime.hpp"
#include "log.hpp"
#include "topology/discovery.hpp"

namespace hier {
namespace {

// Null where there are none. After a fork the parent's next write might move a page away from where
// devices see it.
std::byte* map_pages(std::size_t bytes)
{
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    (void)madvise(pages, bytes, MADV_DONTFORK);
    return static_cast<std::byte*>(pages);
}

}  // namespace

PinnedMemory::~PinnedMemory() { release(); }

void PinnedMemory::release()
{
    if (data_ != nullptr) {
        switch (owner_) {
        case Owner::runtime:
            gpu::runtime()->free_pinned(device_, data_);
            break;
        case Owner::registered:
            if (gpu::runtime()->unregister_host(device_, data_)) munmap(data_, bytes_);
            break;
        case Owner::nobody:
            munmap(data_, bytes_);
            break;
        }
    }
    data_ = nullptr;
    bytes_ = 0;
}

// A runtime's own allocations are near the calling thread (CUDA) or the device (ROCm), but nobody
// promises that.
void PinnedMemory::reserve_near(int device, std::size_t bytes)
{
    const int numa = position_of_pci(gpu::runtime()->pci_address(device)).numa;
    if (numa < 0) return;
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr) return;
    if (!place_memory(pages, bytes, numa) ||
        failed(gpu::runtime()->register_host(device, pages, bytes))) {
        munmap(pages, bytes);
        return;
    }
    data_ = pages;
    owner_ = Owner::registered;
}

void PinnedMemory::reserve_pages(std::size_t bytes)
{
    data_ = map_pages(bytes);
    owner_ = Owner::nobody;
    if (data_ == nullptr)
        log(HIER_LOG_ERROR, "no memory: %zu bytes that the network could reach", bytes);
}

bool PinnedMemory::reserve(int device, std::size_t bytes)
{
    if (bytes <= bytes_ && (device < 0 || owner_ != Owner::nobody)) return true;
    release();
    if (device < 0) {
        reserve_pages(bytes);
    } else {
        reserve_near(device, bytes);
        if (data_ == nullptr) {
            data_ = gpu::runtime()->allocate_pinned(device, bytes);
            owner_ = Owner::runtime;
        }
    }
    if (data_ == nullptr) return false;
    bytes_ = bytes;
    device_ = device;
    return true;
}

}  // namespace hier
