// SPDX-License-Identifier: BSD-3-Clause
// How the members of a rail connect a lane: they exchange their boards' addresses and keys, and send one
// another a first signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
    // Do peers have our address, so that they may connect and write?
    bool is_known() const { return is_known_; }

private:
    void exchange_boards(const Group& group, std::uint64_t inbox);
    void connect_peers(const Group& group, const std::vector<std::vector<std::byte>>& all);
    void require_room(const std::vector<std::vector<std::byte>>& all) const;
    void reach_next(std::size_t self, const std::vector<std::vector<std::byte>>& all) const;
    void greet(const Group& group, void (*keep_alive)());
    void send_greetings();
    void await_greetings(void (*keep_alive)());

    UcxLane& lane_;
    LaneState& state_;
    InFlight& flights_;
    bool is_known_ = false;
};

}  // namespace hier
