// SPDX-License-Identifier: BSD-3-Clause
#include "memory/host_memory.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "topology/discovery.hpp"

namespace hier {
namespace {

// Null: no pages. They are not inherited by fork(), because the parent's next write might then move
// a page away from where devices see it.
std::byte* map_pages(std::size_t bytes)
{
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    (void)madvise(pages, bytes, MADV_DONTFORK);
    return static_cast<std::byte*>(pages);
}

}  // namespace

HostMemory::~HostMemory()
{
    release(current_);
    for (const Block& block : outgrown_) release(block);
}

void HostMemory::release(const Block& block)
{
    if (block.data == nullptr) return;
    switch (block.owner) {
    case Owner::runtime:
        gpu::runtime()->memory().free_pinned(block.device, block.data);
        break;
    case Owner::registered:
        if (gpu::runtime()->memory().unregister_host(block.device, block.data))
            munmap(block.data, block.bytes);
        break;
    case Owner::nobody:
        if (block.device < 0 || gpu::runtime()->finish_copies()) munmap(block.data, block.bytes);
        break;
    }
}

// CUDA allocates near the calling thread, and ROCm near the device. But no document promises that,
// so this function maps and binds the pages itself.
HostMemory::Block HostMemory::reserve_near(int device, std::size_t bytes)
{
    const int numa = position_of_pci(gpu::runtime()->pci_address(device)).numa;
    if (numa < 0) return {};
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr) return {};
    if (!place_memory(pages, bytes, numa) ||
        failed(gpu::runtime()->memory().register_host(device, pages, bytes))) {
        munmap(pages, bytes);
        return {};
    }
    return {pages, bytes, device, Owner::registered};
}

HostMemory::Block HostMemory::reserve_by_runtime(int device, std::size_t bytes)
{
    return {gpu::runtime()->memory().allocate_pinned(device, bytes), bytes, device, Owner::runtime};
}

HostMemory::Block HostMemory::reserve_pages(int device, std::size_t bytes)
{
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr) log(HIER_LOG_ERROR, "no memory: %zu bytes of the host's", bytes);
    return {pages, bytes, device, Owner::nobody};
}

void HostMemory::replace(const Block& block)
{
    const bool stays = is_pinned() && current_.bytes <= max_outgrown;
    if (stays)
        outgrown_.push_back(current_);
    else
        release(current_);
    current_ = block;
}

// nullptr: there is no pinned memory of this size. Then the old block is as before, or it has been
// given back because it was too large to stay.
std::byte* HostMemory::reserve_pinned(int device, std::size_t bytes)
{
    const auto enough = std::find_if(outgrown_.begin(), outgrown_.end(),
                                     [&](const Block& b) { return b.bytes >= bytes; });
    if (enough != outgrown_.end()) {  // the last attempt to pin more memory has failed
        release(current_);
        current_ = *enough;
        outgrown_.erase(enough);
        return current_.data;
    }
    if (is_pinned() && current_.bytes > max_outgrown) replace({});
    const std::size_t ample = is_pinned() ? std::max(bytes, 2 * current_.bytes) : bytes;
    Block block = reserve_near(device, ample);
    if (block.data == nullptr) block = reserve_by_runtime(device, ample);
    if (block.data == nullptr && ample > bytes) block = reserve_by_runtime(device, bytes);
    if (block.data != nullptr) replace(block);
    return block.data;
}

std::byte* HostMemory::reserve(int device, std::size_t bytes)
{
    // Memory that is pinned once stays pinned, and does not alternate with pageable memory.
    if (is_pinned() && device < 0) device = current_.device;
    if (bytes <= current_.bytes && (device < 0 || is_pinned())) return current_.data;
    std::byte* const pinned = device < 0 ? nullptr : reserve_pinned(device, bytes);
    if (pinned != nullptr) return pinned;
    if (bytes > current_.bytes) {
        const Block pages = reserve_pages(device, bytes);
        if (pages.data == nullptr) return nullptr;
        replace(pages);
    }
    return current_.data;
}

}  // namespace hier
