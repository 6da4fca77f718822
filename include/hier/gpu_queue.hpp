// SPDX-License-Identifier: BSD-3-Clause
// Copies by the copy engines of a device, and launches of kernels there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hier/gpu_exchange.hpp"
#include "hier/gpu_fan_out.hpp"
#include "hier/status.hpp"

namespace hier::gpu {

struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    // Copies of one lane share a link, so they are done in order. Lane k > 0 goes to peer k.
    int lane;
    // A copy has this many rows of `bytes` each. Rows begin a pitch apart, which is at least
    // `bytes`.
    std::size_t rows = 1;
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;
    // A copy of one row inside the queue's device that will probably be asked for again.
    bool recurs = false;
    // No other copy of its lane is expected meanwhile. Then the queue asks its stream for the end of
    // the copy, which takes the CPU longer than a mark, but costs the device nothing. All copies of
    // a lane in one call of start() say the same.
    bool is_alone = false;

    static constexpr int inside = 0;  // a device, or between a device and the host
    // To and from a bounce buffer. Such copies are many and small, and the network waits for them.
    static constexpr int to_host = -1;
    static constexpr int from_host = -2;
};

// A word that the device stores behind the copies of a lane > 0. The word lies in pinned or
// registered memory (MemoryRuntime).
struct Word {
    std::atomic<std::uint64_t>* at;
    std::uint64_t value;
    int lane;
};

// How long the process waits for copies.
struct WaitLimit {
    std::chrono::milliseconds bound{0};  // 0: no end, and no report
    // true: a wait that exceeds the bound fails. false: it is reported, now and then, and goes on.
    bool fails = false;
};

// The copy engines of one device. Copies of different lanes are done in any order, even those of
// different calls of start(). No compute unit takes part where the runtime allows that.
class Queue {
public:
    // Waits for all copies, up to the queue's bound, for nobody waits for the end of a process
    // without one. A stream whose copies still run is not destroyed.
    virtual ~Queue() = default;

    // Starts copies between device memory, mapped memory of other processes, and host memory. The
    // device stores each of `words` when the copies of its lane in this call are done. Every word
    // needs at least one such copy, and stores_words(). `ticket` stands for all that this call has
    // started.
    virtual Status start(std::span<const Copy> copies, std::span<const Word> words,
                         std::uint64_t& ticket) = 0;
    // ok: all that the ticket stands for is done. The host and kernels that start from now on see
    // the bytes. in_progress: not all is done.
    virtual Status reached(std::uint64_t ticket) = 0;
    // Blocks until the ticket is reached. timed_out: the copies have exceeded the queue's bound, and
    // its limit makes that an error. They may go on reading and writing, and the queue takes no
    // more.
    virtual Status wait(std::uint64_t ticket) = 0;
    virtual bool stores_words() const = 0;

    // Copies blocks to several places each by the kernel of hier/gpu_fan_out.hpp, in the order of the
    // copies of lane 1. `words` are stored behind it, FanOut::max_places at most. Only with
    // has_kernels().
    virtual Status fan_out(FanOut& arguments, std::span<const Word> words,
                           std::uint64_t& ticket) = 0;
    // Can exchange() and fan_out() be used? The first call loads the kernels, which takes some ms.
    virtual bool has_kernels() = 0;
    // Launches the kernel of hier/gpu_exchange.hpp. All its memory is reached by the queue's device.
    // in_progress: the last one has not ended; ask again later.
    virtual Status exchange(Exchange& arguments, std::uint64_t& ticket) = 0;
    // The kernel that runs ends without its peers.
    virtual void stop_exchange() = 0;
};

}  // namespace hier::gpu
