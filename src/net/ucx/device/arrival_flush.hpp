// SPDX-License-Identifier: BSD-3-Clause
// Arrivals in device memory, which count only once they have been flushed there.
//
//     landed   the puts that have been signalled, peer by peer
//     flushing a copy of these counts, taken when a flush starts: the flush covers these puts
//     visible  the same counts, once the flush is done: the executor may build on these puts
//
// One flush at a time, for all peers. It may end on another thread that progresses the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace hier {

class ArrivalFlush {
public:
    explicit ArrivalFlush(std::size_t peers) : landed_(peers), flushing_(peers), visible_(peers) {}

    // A new collective, from 0. No flush is running.
    void begin();
    void land(std::size_t peer, std::uint32_t count) { landed_[peer] = count; }
    // Takes in a flush that has ended. It does not cover puts that landed later.
    std::uint32_t visible(std::size_t peer);
    bool is_idle() const { return state_.load(std::memory_order_acquire) == State::idle; }
    void start();

    // From any thread. The running flush has done its work, or has to be repeated.
    void done() { state_.store(State::done, std::memory_order_release); }
    void repeat() { state_.store(State::idle, std::memory_order_release); }

private:
    enum class State { idle, running, done };
    std::vector<std::uint32_t> landed_, flushing_, visible_;
    std::atomic<State> state_{State::idle};
};

}  // namespace hier
