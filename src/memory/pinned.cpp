#include "memory/pinned.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "hier/hier.h"
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

PinnedMemory::~PinnedMemory()
{
    release(current_);
    for (const Block& block : outgrown_) release(block);
}

void PinnedMemory::release(const Block& block)
{
    if (block.data == nullptr) return;
    switch (block.owner) {
    case Owner::runtime:
        gpu::runtime()->free_pinned(block.device, block.data);
        break;
    case Owner::registered:
        if (gpu::runtime()->unregister_host(block.device, block.data))
            munmap(block.data, block.bytes);
        break;
    case Owner::nobody:
        munmap(block.data, block.bytes);
        break;
    }
}

// A runtime's own allocations are near the calling thread (CUDA) or the device (ROCm), but nobody
// promises that.
PinnedMemory::Block PinnedMemory::reserve_near(int device, std::size_t bytes)
{
    const int numa = position_of_pci(gpu::runtime()->pci_address(device)).numa;
    if (numa < 0) return {};
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr) return {};
    if (!place_memory(pages, bytes, numa) ||
        failed(gpu::runtime()->register_host(device, pages, bytes))) {
        munmap(pages, bytes);
        return {};
    }
    return {pages, bytes, device, Owner::registered};
}

PinnedMemory::Block PinnedMemory::reserve_by_runtime(int device, std::size_t bytes)
{
    return {gpu::runtime()->allocate_pinned(device, bytes), bytes, device, Owner::runtime};
}

PinnedMemory::Block PinnedMemory::reserve_pages(std::size_t bytes)
{
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr)
        log(HIER_LOG_ERROR, "no memory: %zu bytes that the network could reach", bytes);
    return {pages, bytes, -1, Owner::nobody};
}

bool PinnedMemory::reserve(int device, std::size_t bytes)
{
    const bool is_pinned = current_.owner != Owner::nobody;
    if (bytes <= current_.bytes && (device < 0 || is_pinned)) return true;
    if (is_pinned && device < 0) device = current_.device;  // not by turns one and the other
    const bool stays = is_pinned && current_.bytes <= HIER_MOST_OUTGROWN;
    const std::size_t ample = stays ? std::max(bytes, 2 * current_.bytes) : bytes;
    if (stays)
        outgrown_.push_back(current_);
    else
        release(current_);
    current_ = {};
    if (device >= 0) current_ = reserve_near(device, ample);
    if (device >= 0 && current_.data == nullptr) current_ = reserve_by_runtime(device, ample);
    if (device >= 0 && current_.data == nullptr && ample > bytes)
        current_ = reserve_by_runtime(device, bytes);
    if (device < 0) current_ = reserve_pages(bytes);
    if (current_.data != nullptr) return true;
    current_ = {};
    return false;
}

}  // namespace hier
