// SPDX-License-Identifier: BSD-3-Clause
// Copies by the copy engines of a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hier/status.hpp"

namespace hier::gpu {

struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    // Copies of one lane share a link: they are done in order. Lane k > 0 goes to peer k.
    int lane;
    // So often, a pitch apart at either end. A pitch is at least `bytes`.
    std::size_t rows = 1;
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;
    // One row in the memory of the queue's device, and likely to be asked for again.
    bool recurs = false;

    static constexpr int inside = 0;    // a device, or between it and the host
    static constexpr int to_host = -1;  // of these there are many, small and pressing
    static constexpr int from_host = -2;
};

// A word that is stored behind the copies of a lane > 0. In memory that register_host() or
// allocate_pinned() gave.
struct Word {
    std::atomic<std::uint64_t>* at;
    std::uint64_t value;
    int lane;
};

// The copy engines of one device, as one queue: what one call starts, and what several calls start,
// is done in any order among lanes. No compute unit takes part where the runtime allows that.
class Queue {
public:
    // Waits for what was started, but not longer than its bound: what runs on keeps its streams.
    virtual ~Queue() = default;

    // Starts copies between any two of: device memory, mapped memory of other processes, memory of
    // the host. The device stores each of `words`, only where stores_words(), when the copies of its
    // lane, of which there must be one, are done. `ticket` then stands for all that this call
    // started.
    virtual Status start(std::span<const Copy> copies, std::span<const Word> words,
                         std::uint64_t& ticket) = 0;
    // ok: what the ticket stands for is done, the host sees it, and kernels that start from now on
    // do. in_progress, or an error.
    virtual Status reached(std::uint64_t ticket) = 0;
    // Blocking. timed_out: it has not been reached within the bound, and may go on reading and
    // writing. The queue then takes no more.
    virtual Status wait(std::uint64_t ticket) = 0;
    virtual bool stores_words() const = 0;
};

}  // namespace hier::gpu
