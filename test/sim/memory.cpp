// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

namespace hip_sim {

namespace {

struct Registry {
    std::mutex mutex;
    std::map<std::uintptr_t, Block> blocks;  // by base
};

// Never destroyed, because functions that run at exit may still use the registry.
Registry& registry()
{
    static Registry& made = *new Registry;
    return made;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Finds the first block that ends behind the address. The caller holds the lock.
auto first_behind(Registry& r, std::uintptr_t address)
{
    auto at = r.blocks.upper_bound(address);
    if (at != r.blocks.begin()) {
        const auto before = std::prev(at);
        if (address - before->first < before->second.bytes) return before;
    }
    return at;
}

}  // namespace

std::uint64_t next_id()
{
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

void add(const Block& block)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    r.blocks[number(block.base)] = block;
}

std::optional<Block> find(const void* address)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto at = first_behind(r, number(address));
    if (at == r.blocks.end() || at->first > number(address)) return std::nullopt;
    return at->second;
}

bool overlaps(const void* address, std::size_t bytes)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto at = first_behind(r, number(address));
    return at != r.blocks.end() && at->first < number(address) + bytes;
}

bool is_mapped(int owner, std::uint64_t owner_id)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    return std::ranges::any_of(r.blocks, [&](const auto& entry) {
        const Block& block = entry.second;
        return block.kind == Kind::mapped && block.owner == owner && block.owner_id == owner_id;
    });
}

std::uint64_t count(Kind kind)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    return static_cast<std::uint64_t>(std::ranges::count_if(
        r.blocks, [&](const auto& entry) { return entry.second.kind == kind; }));
}

std::uint64_t bytes_of(Kind kind)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    std::uint64_t bytes = 0;
    for (const auto& [base, block] : r.blocks) bytes += block.kind == kind ? block.bytes : 0;
    return bytes;
}

std::vector<Block> blocks_of(Kind kind, int device)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    std::vector<Block> blocks;
    for (const auto& [base, block] : r.blocks) {
        if (block.kind == kind && block.device == device) blocks.push_back(block);
    }
    return blocks;
}

std::optional<Block> remove(const void* base, Kind kind)
{
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto at = r.blocks.find(number(base));
    if (at == r.blocks.end() || at->second.kind != kind) return std::nullopt;
    const Block block = at->second;
    r.blocks.erase(at);
    return block;
}

}  // namespace hip_sim
