// SPDX-License-Identifier: BSD-3-Clause
// A small block from every rank of a node to every other one, by one kernel for each rank.
//
//   rank 0's device                         rank 1's device
//   block  --kernel 0--> [zone: words from 0 | ...      ]  --kernel 1--> receive buffer
//   receive buffer <--kernel 0--  [... | words from 1 : zone] <--kernel 1-- block
//
// A word has four bytes of a block and a flag. Both arrive together, so no order of stores is
// needed and no barrier. A thread moves two words at a time. A kernel stores its block into the
// zones of all peers, and waits in its own zone for the words of all peers. It waits as long as it
// takes, so all ranks have to be in the call before the first kernel starts. Then all of them have
// also left the call before, and every zone is free.
//
// On a node of G ranks a kernel stores 2*(G-1)*S bytes into peers' devices. It has one thread block
// for each 4 KiB of S, at most 32. Kernels wait for each other, so all that run on a device must
// fit there at once, those of all communicators. So a process runs one kernel at a time, and its
// thread blocks leave room for those of 48 processes, the most that MPS allows on a device.
//
// Source: the protocol LL of NCCL and the one-shot all-gather kernels of MSCCL++.
//
// This header is compiled for devices too, so it includes nothing but types of the language.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hier::gpu {

struct Exchange {
    static constexpr unsigned max_ranks = 64;
    // A zone has so many words of each rank, and a Control behind them. It takes 4 MiB at most.
    static constexpr size_t words_of(unsigned ranks)
    {
        const size_t largest = 64 << 10, all = 512 << 10;
        return all / ranks < largest ? all / ranks & ~size_t{1} : largest;
    }
    struct Control {
        uint32_t ended;  // thread blocks of the running kernel
        uint32_t flag;   // of the last kernel
    };
    static constexpr size_t control_at(unsigned ranks)
    {
        return ranks * words_of(ranks) * sizeof(uint64_t);
    }
    static constexpr size_t zone_bytes(unsigned ranks)
    {
        return control_at(ranks) + sizeof(Control);
    }
    // The largest block.
    static constexpr size_t max_block(unsigned ranks) { return words_of(ranks) * 4; }

    uint32_t rank, ranks;
    uint32_t bytes;    // of a block
    uint32_t flag;     // differs from the flag of every earlier call in these zones, and from 0
    uint32_t is_next;  // Is `flag` one more than that of the last kernel in this zone?
    uint32_t stride;   // words_of(ranks)
    const unsigned char* block;
    uint64_t* zone;    // of this rank
    Control* control;  // of this zone
    // The queue that launches the kernel fills these in. `stop` is a word of the host. Not 0: the
    // kernel ends without the words that have not come. The value is stored at the end, unless
    // `done` is null.
    const uint32_t* stop;
    uint64_t* done;
    uint64_t done_value;
    // Not 0: the kernel does not read `flag` and `done_value`. It takes those of the last kernel in this zone, and of
    // the last kernel of this queue, and adds one to each.
    uint32_t is_counted;
    uint64_t* to[max_ranks];         // where this rank's words begin, in the zone of each rank
    unsigned char* into[max_ranks];  // where the block of each rank goes in the receive buffer
};

// Threads in a thread block, how many such blocks a compute unit runs at a time, and how many
// processes may share a device.
constexpr unsigned exchange_threads = 512, exchange_blocks_of_unit = 3, exchange_processes = 48;
constexpr unsigned exchange_blocks(uint32_t bytes, unsigned compute_units)
{
    const unsigned wanted = (bytes + 8 * exchange_threads - 1) / (8 * exchange_threads);
    const unsigned share = compute_units * exchange_blocks_of_unit / exchange_processes;
    const unsigned most = share < 1 ? 1 : share > 32 ? 32 : share;
    return wanted < 1 ? 1 : wanted > most ? most : wanted;
}

}  // namespace hier::gpu
