// SPDX-License-Identifier: BSD-3-Clause
// One block from a device to several places by one kernel: into the receive buffers of the peers,
// and into the rank's own.
//
//   block --kernel--+--> receive buffer of peer 1
//                   +--> receive buffer of peer 2
//                   +--> own receive buffer
//         then: signals, words of the host that count what has arrived
//
// For n places a kernel reads S bytes and stores n*S. It waits for nobody. It has one thread block
// for each 16 KiB of S, at most 64. (4 H100, blocks of 1 MiB: 25.8 us; with 32 KiB each 28.2; with 8 KiB
// each and up to 128 of them 26. Up to 128 gain 3 % from 4 MiB on.)
//
// The block may have come from the network, from a bounce buffer or from a peer. Whoever launches the
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

#include "hier/gpu_repeat.hpp"

namespace hier::gpu {

struct FanOut {
    static constexpr unsigned max_places = 64;
    // What a thread moves at a time. Every place, and the block, begins at a multiple of it.
    static constexpr size_t wide = 16, narrow = 4;
    struct Signal {
        uint64_t* at;
        uint64_t value;
    };

    const unsigned char* from;
    size_t bytes;  // of the block
    uint32_t is_narrow;
    uint32_t places;
    unsigned char* to[max_places];
    // The queue that launches the kernel fills these in: one signal for each peer at most, and its own
    // word, unless `done` is null.
    uint32_t signals;
    Signal signal[max_places];
    uint64_t* done;
    uint64_t done_value;
    Repeat repeat;  // of the signals' values and `done_value`
};

constexpr unsigned fan_out_threads = 512;
constexpr unsigned fan_out_blocks(size_t bytes)
{
    const size_t step = 16 << 10, most = 64;
    const size_t wanted = (bytes + step - 1) / step;
    return static_cast<unsigned>(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

}  // namespace hier::gpu
