// SPDX-License-Identifier: BSD-3-Clause
// Watches the time of a run. When nothing has moved for a while, a report says who owes what to
// whom. The call goes on, unless the user has asked for an error. A call that waits for a late rank
// is no such case, because MPI lets a rank enter as late as it likes.
//
// A rank does not know whether other ranks miss somebody, or whether bytes move between them. So a
// rank that misses a peer, or whose own bytes move, tells the others a number now and then, its
// heartbeat, and the number grows. Every rank passes on the highest number that it has heard, as a
// Lamport clock does. The number stands still when nobody is missed and nothing moves anywhere.
//
// The watchdog also looks whether a rank of the node that owes something has died. A network tells
// that itself, when something is sent there: a heartbeat at the latest.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "exec/run.hpp"
#include "hier/status.hpp"

namespace hier {

class Watchdog {
public:
    struct Limits {
        // Time without movement while every peer is in the call; 0: nobody looks.
        std::chrono::seconds timeout{0};
        bool fails = false;  // a call whose time is over fails; otherwise it goes on
        int rank = 0;        // of this rank in the team, for the reports
    };

    Watchdog(const Run& run, Limits limits) : run_(run), limits_(limits) {}

    // The run has begun.
    void begin();
    // Called after every pass of a run that has not failed. An error: the call has to fail.
    Status look();

private:
    using Clock = Run::Clock;

    void pass_on_heartbeat(Clock::time_point now, Clock::duration period);
    void note_movement(Clock::time_point now);
    void sign_of_life(Clock::time_point now);
    void tell() const;
    int lost_rank() const;
    Status stall(Clock::time_point now);
    void report_late() const;
    void report_stall(Clock::time_point now) const;
    bool report_peer(Level level, std::size_t pair) const;

    const Run& run_;
    Limits limits_;
    unsigned passes_ = 0;
    bool has_moved_ = false;            // since the last look
    bool moves_ = false;                // since the last heartbeat
    bool is_stalled_ = false;           // and the log says so
    Clock::time_point last_move_;       // or sign of life
    Clock::time_point last_heartbeat_;  // a period has begun
    bool has_told_ = false;             // in this run
    Clock::time_point last_told_;
    Clock::time_point last_look_;
    std::uint32_t heartbeat_ = 0;  // the highest that this rank has told
    bool late_reported_ = false;
    int lost_ = -1;  // a rank that has been missed once although its process has ended
    std::optional<Clock::time_point> last_report_;  // of a stall, in any run
};

}  // namespace hier
