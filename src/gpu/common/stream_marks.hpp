// SPDX-License-Identifier: BSD-3-Clause
// Marks behind copies, by which a queue learns that the copies are done. Every call of start()
// leaves one mark in each stream that it uses.
//
// If the device can store words, each stream has a word in pinned memory that counts its marks, and
// a look at a mark costs one read of memory. Otherwise a mark is an event.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "gpu/common/platform.hpp"

namespace hier::gpu {

struct EventDestroy {
    using pointer = hipEvent_t;
    void operator()(hipEvent_t event) const { (void)hipEventDestroy(event); }
};
using Event = std::unique_ptr<hipEvent_t, EventDestroy>;

class StreamMarks {
public:
    static constexpr std::size_t max_streams = 64;
    // One more stream, for a kernel.
    static constexpr std::size_t of_kernel = max_streams;

    // For the streams of the current device.
    hipError_t open(int device);
    // Once all marks are reached: destroys what open() and add() made.
    void close();
    // Destroys nothing. Copies still run, or a reset of the device has ended all that was made
    // there.
    void abandon();

    bool are_words() const { return words_ != nullptr; }
    // One add() for each of so many streams will then allocate nothing.
    void reserve(std::size_t streams);
    // Adds a mark behind all that the stream has been given. The device stores `words` too, which
    // belong to this stream. A barrier is a mark without copies.
    hipError_t add(std::uint64_t ticket, std::size_t stream, hipStream_t handle,
                   std::vector<Word>& words, bool is_barrier);
    // A mark that costs the device nothing: the end of all that the stream has been given, and will
    // have been given when look() asks.
    void add_end(std::uint64_t ticket, std::size_t stream, hipStream_t handle);
    // Where a kernel of this stream stores `value` when it ends. nullptr: the device stores no words.
    std::uint64_t* next_word(std::size_t stream, std::uint64_t& value) const;
    // The mark that this kernel leaves. It has been launched.
    void add_stored(std::uint64_t ticket, std::size_t stream, hipStream_t handle);
    // Looks at the marks of this ticket, and drops those that are reached. hipErrorNotReady: there
    // are others. Any other error is that of a copy.
    hipError_t look(std::uint64_t ticket);
    bool has(std::uint64_t ticket) const;

private:
    struct Mark {
        std::uint64_t ticket;
        std::size_t stream;
        hipStream_t handle;
        std::uint64_t value;  // the stream's word has it when the copies are done
        Event event;          // if the device stores no words
        bool is_barrier;
        bool is_end = false;  // see add_end()
    };

    hipError_t take_event(Mark& mark);
    hipError_t look(const Mark& mark);

    std::vector<Mark> marks_;                              // not yet seen to be reached
    std::atomic<std::uint64_t>* words_ = nullptr;          // pinned, one for each stream
    std::array<std::uint64_t, max_streams + 1> values_{};  // by stream: of the last mark
    unsigned looks_ = 0;
    // Events that are free: for copies, and for barriers. ROCm 10 takes an event without times for
    // the last one of its stream if nothing came in between, and then makes nothing visible. So
    // events of barriers have times.
    std::array<std::vector<Event>, 2> spare_events_;
};

}  // namespace hier::gpu
