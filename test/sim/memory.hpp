// SPDX-License-Identifier: BSD-3-Clause
// The memory that the runtime knows: what hipMalloc and its like gave, what was registered, and
// what was mapped from other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hip_sim {

enum class Kind {
    device,
    pool,  // of hipMallocAsync: cannot be exported
    managed,
    pinned,
    registered,
    mapped,   // of another process
    segment,  // of hipMemMap
    foreign,  // of a device, and not this runtime's but that of the layer below (OpenMP's, say)
};

struct Block {
    Kind kind;
    std::byte* base = nullptr;   // as the application sees it
    std::byte* alias = nullptr;  // as the copy engines see it
    std::size_t bytes = 0;       // as asked for
    int device = 0;
    unsigned flags = 0;
    std::uint64_t id = 0;  // of no other block of this process, ever
    // Device memory is a file. Of mapped memory: which one of which process.
    int fd = -1;
    int owner = 0;
    std::uint64_t owner_id = 0;
    bool may_be_copied = true;  // false: mapped, and no access given

    bool is_on_device() const
    {
        return kind == Kind::device || kind == Kind::pool || kind == Kind::mapped ||
               kind == Kind::segment || kind == Kind::foreign;
    }
};

std::uint64_t next_id();

void add(const Block& block);
std::optional<Block> find(const void* address);  // anywhere inside
bool overlaps(const void* address, std::size_t bytes);
bool is_mapped(int owner, std::uint64_t owner_id);
std::uint64_t count(Kind kind);
// Forgets the block that begins there, if it is of this kind; its memory stays.
std::optional<Block> remove(const void* base, Kind kind);

}  // namespace hip_sim
