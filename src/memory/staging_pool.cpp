// SPDX-License-Identifier: BSD-3-Clause
#include "memory/staging_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>

#include "base/log.hpp"
#include "base/statistics.hpp"
#include "gpu/runtime.hpp"
#include "memory/staging_budget.hpp"
#include "topology/discovery.hpp"

namespace hier {
namespace {

// Pinned blocks have few sizes, so that one that is given back serves other calls. All sizes up to
// half the budget fit into the budget together.
constexpr std::size_t min_pinned = 64 << 10;

// Null: no pages. They are not inherited by fork(), because the parent's next write might then move
// a page away from where devices see it.
std::byte* map_pages(std::size_t bytes, int more_flags = 0)
{
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    (void)madvise(pages, bytes, MADV_DONTFORK);
    return static_cast<std::byte*>(pages);
}

}  // namespace

StagingPool& StagingPool::instance()
{
    static StagingPool pool;
    return pool;
}

void StagingPool::free(const Block& block)
{
    if (block.is_counted) StagingBudget::instance().give_back(block.bytes);
    switch (block.owner) {
    case Owner::runtime:
        gpu::runtime()->memory().free_pinned(block.device, block.data);
        break;
    case Owner::registered:
        if (gpu::runtime()->memory().unregister_host(block.device, block.data))
            munmap(block.data, block.bytes);
        break;
    case Owner::nobody:
        munmap(block.data, block.bytes);
        break;
    }
}

// CUDA allocates near the calling thread, and ROCm near the device. But no document promises that,
// so this function maps and binds the pages itself.
StagingPool::Block StagingPool::make_near(int device, std::size_t bytes)
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

StagingPool::Block StagingPool::make_by_runtime(int device, std::size_t bytes)
{
    return {gpu::runtime()->memory().allocate_pinned(device, bytes), bytes, device, Owner::runtime};
}

StagingPool::Block StagingPool::make_pages(int device, std::size_t bytes)
{
    std::byte* const pages = map_pages(bytes);
    if (pages == nullptr) log(HIER_LOG_ERROR, "no memory: %zu bytes of the host's", bytes);
    return {pages, bytes, device, Owner::nobody};
}

// The smallest one that is large enough.
StagingPool::Block* StagingPool::find_free(std::size_t bytes, bool is_pinned)
{
    Block* found = nullptr;
    for (Block& block : blocks_) {
        if (block.is_lent || block.is_pinned() != is_pinned || block.bytes < bytes) continue;
        if (found == nullptr || block.bytes < found->bytes) found = &block;
    }
    return found;
}

// Unmaps the pageable block that was used longest ago. False: there is none.
bool StagingPool::drop_one()
{
    const auto last = std::find_if(blocks_.rbegin(), blocks_.rend(), [](const Block& block) {
        return !block.is_lent && !block.is_pinned();
    });
    if (last == blocks_.rend()) return false;
    free(*last);
    blocks_.erase(std::next(last).base());
    return true;
}

// Counts a block that is to be kept. Older pageable blocks make room for it.
bool StagingPool::count(std::size_t bytes)
{
    bool is_counted = StagingBudget::instance().take(bytes);
    while (!is_counted && drop_one()) is_counted = StagingBudget::instance().take(bytes);
    return is_counted;
}

// nullptr: there is no pinned memory of this size.
StagingPool::Block* StagingPool::make_pinned(int device, std::size_t bytes)
{
    const std::size_t size = std::bit_ceil(std::max(bytes, min_pinned));
    if (!count(size)) return nullptr;
    Block block = make_near(device, size);
    if (block.data == nullptr) block = make_by_runtime(device, size);
    if (block.data == nullptr) {
        StagingBudget::instance().give_back(size);
        return nullptr;
    }
    block.is_counted = true;
    return &blocks_.emplace_front(block);
}

StagingPool::Lent StagingPool::borrow(int device, std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    Block* block = device >= 0 ? find_free(bytes, true) : nullptr;
    bool is_kept = block != nullptr;
    if (device >= 0 && !is_kept) block = make_pinned(device, bytes);
    if (block == nullptr) {
        block = find_free(bytes, false);
        is_kept = block != nullptr;
    }
    if (block == nullptr) {
        const Block pages = make_pages(device, bytes);
        if (pages.data == nullptr) return {};
        block = &blocks_.emplace_front(pages);
    }
    Statistics::instance().add(is_kept ? HIER_STATISTIC_STAGING_HITS
                                       : HIER_STATISTIC_STAGING_MISSES);
    block->is_lent = true;
    if (!block->is_pinned()) block->device = device;
    return {block->data, block->is_pinned()};
}

std::byte* StagingPool::borrow_sparse(std::size_t bytes)
{
    std::byte* const pages = map_pages(bytes, MAP_NORESERVE);
    if (pages == nullptr) {
        log(HIER_LOG_ERROR, "no room for %zu bytes of the host's memory", bytes);
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    Block block{pages, bytes};
    block.is_lent = true;
    block.is_sparse = true;
    blocks_.push_front(block);
    return pages;
}

void StagingPool::drop_pages(std::byte* from, std::size_t bytes)
{
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(from) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(from) + bytes + page - 1) / page * page;
    (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

void StagingPool::give_back(const std::byte* data)
{
    const std::lock_guard lock(mutex_);
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block& b) { return b.data == data && b.is_lent; });
    if (block == blocks_.end()) return;
    if (!block->is_counted && !block->is_sparse) block->is_counted = count(block->bytes);
    block->is_lent = false;
    if (block->is_counted) {
        blocks_.splice(blocks_.begin(), blocks_, block);
    } else {
        free(*block);
        blocks_.erase(block);
    }
}

std::shared_ptr<std::byte> StagingPool::borrow_shared(int device, std::size_t bytes,
                                                      bool& is_pinned)
{
    const Lent lent = borrow(device, bytes);
    is_pinned = lent.is_pinned;
    if (lent.data == nullptr) return nullptr;
    return {lent.data, [](std::byte* data) { instance().give_back(data); }};
}

// A copy that does not end may still read or write pageable memory.
void StagingPool::clear()
{
    const std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) {
        const bool is_in_use =
            !block.is_pinned() && block.device >= 0 && !gpu::runtime()->finish_copies();
        if (!is_in_use) free(block);
    }
    blocks_.clear();
}

}  // namespace hier
