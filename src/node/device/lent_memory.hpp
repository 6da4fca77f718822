// SPDX-License-Identifier: BSD-3-Clause
// Device memory of this process that others may map, for the life of the process. No memory is freed
// while a peer has it mapped. A peer that has mapped a block finds it unchanged when it is lent again.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "node/device/peer_mappings.hpp"

namespace hier {

class LentMemory {
public:
    struct Block {
        int device;
        std::size_t bytes;
        std::byte* base;
        ExportedMemory exported;
        bool is_lent;
    };

    static LentMemory& instance();

    // A block of that many bytes or more. nullptr: there is none; the cause has been logged.
    const Block* take(int device, std::size_t bytes);
    // No peer writes into it any more.
    void give_back(const std::byte* base);
    void clear();
    // The number of blocks that are lent.
    std::size_t lent();

private:
    static bool export_block(Block& block);

    std::mutex mutex_;
    std::list<Block> blocks_;
};

}  // namespace hier
