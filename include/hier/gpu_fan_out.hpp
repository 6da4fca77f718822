// SPDX-License-Identifier: BSD-3-Clause
// Blocks from a device to several places each, by one kernel: into the receive buffers of the peers, and
// into the rank's own.
//
//   block --kernel--+--> receive buffer of peer 1
//                   +--> receive buffer of peer 2
//                   +--> own receive buffer
//         then, when all blocks are there: signals, words of the host that count what has arrived
//
// For n places a kernel reads S bytes of a block and stores n*S. It waits for nobody. It has one thread
// block for each 16 KiB of the largest block, at most 64, and as many for each other block, at most 128 in
// all. (4 H100, one block of 1 MiB: 25.8 us; with 32 KiB each 28.2; with 8 KiB each and up to 128 of them
// 26. Up to 128 gain 3 % from 4 MiB on.)
//
// A block may have come from the network, from a bounce buffer or from a peer. Whoever launches the
// kernel has seen before that the bytes are there: by the end of a copy, by a peer's signal, or by a
// signal of the network and, where the device needs one, the flush behind it. On CUDA all of them
// write through the device's L2 cache, and a kernel that starts has nothing of them in L1. On ROCm the
// kernel begins with a fence that drops what its caches have.
//
// Source: the kernels of NCCL and MSCCL++ that store straight into the peers' buffers.
//
// This header is compiled for devices too, so it includes nothing but types of the language.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace hier::gpu {

struct FanOut {
    static constexpr unsigned max_blocks = 16, max_places = 64, max_places_in_all = 128;
    // What a thread moves at a time. Every place, and the block, begins at a multiple of it.
    static constexpr size_t wide = 16, narrow = 4;
    struct Block {
        const unsigned char* from;
        size_t bytes;
        uint32_t is_narrow;
        uint32_t first, places;  // to[first] and so on
    };
    struct Signal {
        uint64_t* at;
        uint64_t value;
    };
    struct alignas(16) Added {
        uint64_t signals, done;
    };

    uint32_t blocks;
    uint32_t places;  // of all blocks
    Block block[max_blocks];
    unsigned char* to[max_places_in_all];
    // The queue that launches the kernel fills these in: one signal for each peer at most, and its own
    // word, unless `done` is null.
    uint32_t signals;
    Signal signal[max_places];
    uint64_t* done;
    uint64_t done_value;
    // Memory of the host: what the kernel adds to the signals' values and to `done_value`. nullptr: nothing.
    const Added* added;
};

constexpr unsigned fan_out_threads = 512;
// Thread blocks for each block, where the largest one has so many bytes.
constexpr unsigned fan_out_blocks(size_t largest, unsigned blocks)
{
    const size_t step = 16 << 10, in_all = 128, most = blocks > 2 ? in_all / blocks : 64;
    const size_t wanted = (largest + step - 1) / step;
    return static_cast<unsigned>(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

}  // namespace hier::gpu
