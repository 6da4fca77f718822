// SPDX-License-Identifier: BSD-3-Clause
// The memory that the runtime knows: allocations, registered memory, and memory that other
// processes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hip_sim {

enum class Kind {
    device,
    pool,  // of hipMallocAsync; cannot be exported
    managed,
    pinned,
    registered,
    mapped,   // of another process
    segment,  // of hipMemMap
    foreign,  // device memory of the layer below HIP, such as OpenMP's
};

struct Block {
    Kind kind;
    std::byte* base = nullptr;   // as the application sees it
    std::byte* alias = nullptr;  // as the copy engines see it
    std::size_t bytes = 0;       // that the application asked for
    int device = 0;
    unsigned flags = 0;
    std::uint64_t id = 0;  // never used again in this process
    // Device memory is a file. For mapped memory, `owner_id` says which memory of process `owner`
    // it is.
    int fd = -1;
    int owner = 0;
    std::uint64_t owner_id = 0;
    bool may_be_copied = true;  // false: mapped, but without access so far

    bool is_on_device() const
    {
        return kind == Kind::device || kind == Kind::pool || kind == Kind::mapped ||
               kind == Kind::segment || kind == Kind::foreign;
    }
};

std::uint64_t next_id();

void add(const Block& block);
std::optional<Block> find(const void* address);  // which may be anywhere inside
bool overlaps(const void* address, std::size_t bytes);
bool is_mapped(int owner, std::uint64_t owner_id);
std::uint64_t count(Kind kind);
std::uint64_t bytes_of(Kind kind);  // of all such blocks
std::vector<Block> blocks_of(Kind kind, int device);
// Forgets the block that begins there, if the block is of this kind. The memory itself stays.
std::optional<Block> remove(const void* base, Kind kind);

}  // namespace hip_sim
