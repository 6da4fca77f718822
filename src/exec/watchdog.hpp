// SPDX-License-Identifier: BSD-3-Clause
// Watches the time of a run. A call in which nothing moves ends. A call that waits for a late rank
// does not end, because MPI lets a rank enter as late as it likes.
//
// A rank does not know whether other ranks miss somebody. So a rank that misses a peer tells the
// others a number now and then, its heartbeat, and the number grows. Every rank passes on the
// highest number that it has heard, as a Lamport clock does. The number stands still when nobody is
// missed.
#pragma once

#include <chrono>
#include <cstdint>

#include "exec/run.hpp"
#include "hier/status.hpp"

namespace hier {

class Watchdog {
public:
    struct Limits {
        // Time without movement while every peer is in the call; 0: no limit.
        std::chrono::seconds timeout{0};
    };

    Watchdog(const Run& run, Limits limits) : run_(run), limits_(limits) {}

    // The run has begun.
    void begin();
    // Called after every pass of a run that has not failed. timed_out: the call has to fail, and
    // the log says who owes what.
    Status look();

private:
    using Clock = Run::Clock;

    void pass_on_heartbeat(Clock::time_point now);
    void report_late() const;
    void report_stall() const;
    void report_peer(Level level, std::size_t pair) const;

    const Run& run_;
    Limits limits_;
    unsigned idle_passes_ = 0;
    Clock::time_point last_move_;  // or sign of life
    Clock::time_point last_heartbeat_;
    Clock::time_point last_look_;
    std::uint32_t heartbeat_ = 0;  // the highest that this rank has told
    bool late_reported_ = false;
};

}  // namespace hier
