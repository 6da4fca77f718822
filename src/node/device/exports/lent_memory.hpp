// SPDX-License-Identifier: BSD-3-Clause
// Device memory of this process that others may map. A block lives as long as the process, so no
// memory is freed while a peer has it mapped. A mapping of a block stays good when the block is
// lent again.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "node/device/imports/peer_mappings.hpp"

namespace hier {

class LentMemory {
public:
    struct Block {
        int device = -1;
        std::size_t bytes = 0;
        std::byte* base = nullptr;
        ExportedMemory exported = {};
        bool is_lent = false;
        bool is_counted = false;      // in the budget of staging
        bool is_for_kernels = false;  // MemoryRuntime::allocate_for_kernels()
    };

    static LentMemory& instance();

    // Lends a block of at least so many bytes. nullptr: there is none, and the cause has been
    // logged.
    const Block* take(int device, std::size_t bytes);
    // The same for staging, which counts as kept (StagingBudget).
    const Block* take_kept(int device, std::size_t bytes);
    // The same for words that kernels of other devices store.
    const Block* take_for_kernels(int device, std::size_t bytes);
    // Call this when no peer writes into the block any more.
    void give_back(const std::byte* base);
    void clear();
    // The number of blocks that are lent.
    std::size_t lent();

private:
    static bool export_block(Block& block);
    const Block* take(const Block& wanted);

    std::mutex mutex_;
    std::list<Block> blocks_;
};

}  // namespace hier
