// SPDX-License-Identifier: BSD-3-Clause
// How a retired lane takes leave of its peers, step by step and without waiting:
//
//   flush      until every peer has acknowledged what this lane has sent (not over TCP, which keeps order)
//   goodbye    the last word to every peer that this rank has connected to
//   gone       until the goodbye of every peer is here that was welcome on our board: nobody writes there
//              any more
#pragma once

#include <cstddef>

#include "net/ucx/lane/in_flight.hpp"
#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class Teardown {
public:
    Teardown(LaneState& state, InFlight& flights) : state_(state), flights_(flights) {}

    // One step, under the worker's mutex. True: all peers have left. Throws std::bad_alloc where there is
    // no memory to send a word; the next step goes on with the same peer.
    bool step();

private:
    void flush();
    void say_goodbye();
    bool have_all_left();

    LaneState& state_;
    InFlight& flights_;
    bool is_in_order_ = false;  // messages arrive behind puts
    bool has_said_goodbye_ = false;
    std::size_t flushed_peers_ = 0, left_peers_ = 0;  // the first ones of those connected
};

}  // namespace hier
