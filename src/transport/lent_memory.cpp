#include "transport/lent_memory.hpp"

#include <unistd.h>

#include <algorithm>

#include "gpu/runtime.hpp"

namespace hier {

LentMemory& LentMemory::instance()
{
    static LentMemory memory;
    return memory;
}

const LentMemory::Block* LentMemory::take(int device, std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    Block* smallest = nullptr;
    for (Block& block : blocks_) {
        if (block.is_lent || block.device != device || block.bytes < bytes) continue;
        if (smallest == nullptr || block.bytes < smallest->bytes) smallest = &block;
    }
    if (smallest != nullptr) {
        smallest->is_lent = true;
        return smallest;
    }
    gpu::Runtime& runtime = *gpu::runtime();
    Block made{device, bytes, runtime.allocate_device(device, bytes), {}, true};
    if (made.base == nullptr) return nullptr;
    Allocation memory;
    if (failed(gpu::inspect(made.base, memory)) ||
        !runtime.export_memory(memory, made.exported.handle)) {
        runtime.free_device(device, made.base);
        return nullptr;
    }
    made.exported.base = reinterpret_cast<std::uint64_t>(memory.base);
    made.exported.length = memory.length;
    made.exported.id = memory.id;
    made.exported.owner = static_cast<std::int32_t>(getpid());
    return &blocks_.emplace_back(made);
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
    for (const Block& block : blocks_) gpu::runtime()->free_device(block.device, block.base);
    blocks_.clear();
}

}  // namespace hier
