// SPDX-License-Identifier: BSD-3-Clause
// The C interface to memory: where it is, copies, and memory of our own.
#include <algorithm>
#include <memory>
#include <vector>

#include "api/guard.hpp"
#include "gpu/runtime.hpp"
#include "hier/hier.h"
#include "memory/program_memory.hpp"
#include "memory/readable.hpp"
#include "memory/staging_pool.hpp"
#include "node/device/exports/lent_memory.hpp"

namespace {

// hier_memory's kinds are those of MemoryKind.
static_assert(static_cast<int>(hier::MemoryKind::host) == HIER_MEMORY_HOST &&
              static_cast<int>(hier::MemoryKind::pinned) == HIER_MEMORY_PINNED &&
              static_cast<int>(hier::MemoryKind::managed) == HIER_MEMORY_MANAGED &&
              static_cast<int>(hier::MemoryKind::device) == HIER_MEMORY_DEVICE);

constexpr std::size_t min_lent =
    4 << 20;                            // bytes of the smallest block; HIER_MAX_LENT is the largest
constexpr std::size_t max_blocks = 16;  // failed calls keep theirs for ever

}  // namespace

static hier_memory memory_of(const hier::Allocation& found)
{
    return {.kind = static_cast<int>(found.kind),
            .device = found.device,
            .base = found.base,
            .length = found.length,
            .id = found.id,
            .is_exportable = found.is_exportable ? 1 : 0,
            .is_reachable = found.kind != hier::MemoryKind::device ? 1 : 0,
            .error = HIER_OK};
}

static void inspect(const hier::gpu::Inspector& inspector, const void* address, hier_memory* memory)
{
    *memory = {};
    memory->error = hier::guarded(HIER_ERR_TRANSPORT, [&] {
        hier::Allocation found;
        const hier::Status status = inspector.inspect(address, found);
        *memory = memory_of(found);
        // If the GPU's runtime cannot tell, the kernel can.
        if (hier::failed(status)) memory->is_reachable = hier::is_readable(address) ? 1 : 0;
        return hier::code_of(status);
    });
}

void hier_memory_inspect(size_t count, const void* const addresses[], hier_memory* const memories[])
{
    const hier::gpu::Inspector inspector;
    for (size_t i = 0; i < count; i++) {
        if (inspector.finds_host_only() || hier::is_of_program(addresses[i])) {
            *memories[i] = memory_of({});
        } else {
            inspect(inspector, addresses[i], memories[i]);
        }
    }
}

int hier_memory_is_all_host(void)
{
    return hier::guarded(0, [] { return hier::gpu::Inspector().finds_host_only() ? 1 : 0; });
}

int hier_memory_is_host(size_t count, const void* const addresses[])
{
    return hier::guarded(0, [&] {
        const bool is_host = hier::gpu::Inspector().finds_host_only() ||
                             std::all_of(addresses, addresses + count, hier::is_of_program);
        return is_host ? 1 : 0;
    });
}

int hier_device_of_thread(void)
{
    return hier::guarded(-1, [] {
        const hier::gpu::Runtime* runtime = hier::gpu::runtime();
        return runtime == nullptr ? -1 : runtime->current_device();
    });
}

int hier_memory_copy(const hier_strided_copy* wanted, size_t count)
{
    return hier::guarded(HIER_ERR_TRANSPORT, [&] {
        std::vector<hier::gpu::Copy> copies;
        copies.reserve(count);
        for (size_t i = 0; i < count; i++)
            copies.push_back({wanted[i].to, wanted[i].from, wanted[i].bytes,
                              hier::gpu::Copy::inside, wanted[i].rows, wanted[i].to_pitch,
                              wanted[i].from_pitch});
        return hier::code_of(hier::gpu::copy_now(copies));
    });
}

void* hier_staging_borrow(int kind, size_t bytes)
{
    void* data = nullptr;
    (void)hier::guarded(HIER_ERR_MEMORY, [&] {
        hier::StagingPool& pool = hier::StagingPool::instance();
        const int device = kind == HIER_STAGING_PINNED ? hier::gpu::used_device() : -1;
        data = kind == HIER_STAGING_SPARSE ? pool.borrow_sparse(bytes)
                                           : pool.borrow(device, bytes).data;
        return static_cast<int>(HIER_OK);
    });
    return data;
}

void hier_staging_drop_pages(void* from, size_t bytes)
{
    hier::StagingPool::drop_pages(static_cast<std::byte*>(from), bytes);
}

void hier_staging_give_back(void* memory)
{
    if (memory != nullptr)
        hier::StagingPool::instance().give_back(static_cast<const std::byte*>(memory));
}

void* hier_memory_borrow(const void* like, size_t bytes)
{
    void* base = nullptr;
    (void)hier::guarded(HIER_ERR_MEMORY, [&] {
        hier::Allocation memory;
        if (bytes > HIER_MAX_LENT) return hier::code_of(hier::Status::bad_argument);
        const hier::Status status = hier::gpu::inspect(like, memory);
        if (hier::failed(status) || memory.kind != hier::MemoryKind::device)
            return hier::code_of(hier::Status::out_of_memory);
        // There are few sizes, so that a block that is given back serves the next call.
        std::size_t size = min_lent;
        while (size < bytes) size *= 4;
        hier::LentMemory& all = hier::LentMemory::instance();
        const auto* block = all.lent() < max_blocks ? all.take_kept(memory.device, size) : nullptr;
        if (block != nullptr) base = block->base;
        return static_cast<int>(HIER_OK);
    });
    return base;
}

void hier_memory_give_back(const void* memory)
{
    hier::LentMemory::instance().give_back(static_cast<const std::byte*>(memory));
}
