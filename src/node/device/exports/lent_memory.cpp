// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/lent_memory.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"
#include "memory/staging_budget.hpp"

namespace hier {

LentMemory& LentMemory::instance()
{
    static LentMemory memory;
    return memory;
}

// A block that cannot be exported stays and is tried again, because to free it might wait for
// kernels.
bool LentMemory::export_block(Block& block)
{
    if (block.exported.owner != 0) return true;
    Allocation memory;
    if (failed(gpu::inspect(block.base, memory)) ||
        !gpu::runtime()->export_memory(memory, block.exported.handle))
        return false;
    block.exported.base = reinterpret_cast<std::uint64_t>(memory.base);
    block.exported.length = memory.length;
    block.exported.id = memory.id;
    block.exported.owner = static_cast<std::int32_t>(getpid());
    return true;
}

const LentMemory::Block* LentMemory::take(int device, std::size_t bytes)
{
    return take({.device = device, .bytes = bytes});
}

const LentMemory::Block* LentMemory::take_kept(int device, std::size_t bytes)
{
    return take({.device = device, .bytes = bytes, .is_counted = true});
}

const LentMemory::Block* LentMemory::take_for_kernels(int device, std::size_t bytes)
{
    return take({.device = device, .bytes = bytes, .is_counted = true, .is_for_kernels = true});
}

const LentMemory::Block* LentMemory::take(const Block& wanted)
{
    const std::lock_guard lock(mutex_);
    Block* found = nullptr;
    for (Block& block : blocks_) {
        if (block.is_lent || block.device != wanted.device || block.bytes < wanted.bytes ||
            block.is_for_kernels != wanted.is_for_kernels)
            continue;
        if (found == nullptr || block.bytes < found->bytes) found = &block;
    }
    if (found == nullptr) {
        if (wanted.is_counted && !StagingBudget::instance().take(wanted.bytes)) return nullptr;
        found = &blocks_.emplace_back(wanted);
        const gpu::MemoryRuntime& memory = gpu::runtime()->memory();
        found->base = wanted.is_for_kernels
                          ? memory.allocate_for_kernels(wanted.device, wanted.bytes)
                          : memory.allocate_device(wanted.device, wanted.bytes);
        if (found->base == nullptr) {
            if (wanted.is_counted) StagingBudget::instance().give_back(wanted.bytes);
            blocks_.pop_back();
            return nullptr;
        }
    }
    if (!export_block(*found)) return nullptr;
    found->is_lent = true;
    return found;
}

void LentMemory::give_back(const std::byte* base)
{
    const std::lock_guard lock(mutex_);
    for (Block& each : blocks_) {
        if (each.base == base) each.is_lent = false;
    }
}

std::size_t LentMemory::lent()
{
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        blocks_.begin(), blocks_.end(), [](const Block& block) { return block.is_lent; }));
}

void LentMemory::clear()
{
    const std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) {
        gpu::runtime()->memory().free_device(block.device, block.base);
        if (block.is_counted) StagingBudget::instance().give_back(block.bytes);
    }
    blocks_.clear();
}

}  // namespace hier
