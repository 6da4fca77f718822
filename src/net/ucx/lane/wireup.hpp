// SPDX-License-Identifier: BSD-3-Clause
// How the members of a rail connect a lane.
//
// At set-up all exchange the addresses and keys of their boards. Then each connects to the next member that
// is a partner, and to those whose next one it is. They send each other a first signal. So a network that does
// not work shows while there still is a fallback. A rank connects to another partner when a call first
// exchanges data with it. That takes two words each way, which are messages:
//
//     rank                                 peer
//     connect      -- hello -------------> notes it; answers when it connects, too
//                  <------------- hello -- connect
//     note, answer -- welcome -----------> may write on the rank's board
//     may write    <----------- welcome -- notes it, answers
//
// Why so: a board must stay as long as anybody may write on it, and a peer may never come to the call. So a rank
// writes on no board before its owner has welcomed it. And the owner waits for the goodbye of those that it
// has welcomed, and of nobody else. A message to a lane that is gone is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/rail_words.hpp"
#include "net/ucx/lane/in_flight.hpp"
#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class Group;
class UcxLane;

class Wireup {
public:
    Wireup(UcxLane& lane, LaneState& state, InFlight& flights)
        : lane_(lane), state_(state), flights_(flights)
    {
    }

    // As UcxLane::connect. `inbox`: the number of ours.
    void connect(const Group& group, std::uint64_t inbox, void (*keep_alive)());
    // Connects to a partner and greets it. Under the worker's mutex, as the next one. Throws SetupError.
    void reach(int peer);
    // Welcomes a peer that has greeted, if that is still to be done. We are connected to it.
    void welcome(int peer);
    // Do peers have our address, so that they may connect and write?
    bool is_known() const { return is_known_; }

private:
    void exchange_boards(const Group& group, std::uint64_t inbox);
    void note_first();
    void connect_first();
    void connect_to(std::size_t peer);
    void require_room() const;
    void reach_next() const;
    void greet(const Group& group, void (*keep_alive)());
    std::size_t next_partner() const;
    void send_greetings();
    void await_greetings(void (*keep_alive)());

    UcxLane& lane_;
    LaneState& state_;
    InFlight& flights_;
    bool is_known_ = false;
    std::uint64_t self_ = 0;          // index on the rail
    std::vector<BoardAddress> told_;  // how to reach each partner that is not connected yet
    std::vector<int> first_;          // the peers that are connected at set-up
};

}  // namespace hier
