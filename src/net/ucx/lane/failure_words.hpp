// SPDX-License-Identifier: BSD-3-Clause
// What a lane tells its peers after a failure:
//
//   raise   -- failure ------------------>  every peer, at once
//   stop    -- the puts before, stopped ->  this rank's puts have all landed
//
// A peer whose board is still closed to us (wireup.hpp) hears of it when it opens its board.
#pragma once

#include <cstdint>

#include "net/ucx/lane/in_flight.hpp"
#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class FailureWords {
public:
    FailureWords(LaneState& state, InFlight& flights) : state_(state), flights_(flights) {}

    // As Transport's.
    void raise(Status status);
    void stop();
    bool is_raised() const { return failure_ != 0; }
    // All that has been said so far, to a peer that has opened its board. Under the worker's mutex.
    void tell(int peer);

private:
    void say_failed(int peer);
    void say_stopped(int peer);

    LaneState& state_;
    InFlight& flights_;
    std::uint64_t failure_ = 0;
    bool has_stopped_ = false;
};

}  // namespace hier
