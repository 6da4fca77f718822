// SPDX-License-Identifier: BSD-3-Clause
// A lane: a rail's share on one network device (rail.hpp). UCP puts go from our buffers straight into the
// rail peers' receive buffers, each followed by a signal.
//
// Every rank owns a board: for each rail peer a slot that only this peer writes.
//
//     peer's slot on our board:   arrivals | ready | heartbeat | goodbye | stopped | parts
//                                 | announcement {address, length, version, rkey}
//
//   receiver -> sender   announcement, when buffer or rkey changed; then ready = sequence
//   sender -> receiver   data, then arrivals = {sequence, count}; several in flight
//
// An announcement is overwritten only in the next collective. Its writer enters that one after
// everything has arrived that the sender put by means of the announcement.
//
// The parts of a lane:
//
//     LaneState     worker, board, peers, binding        Wireup        connects to a peer when asked
//     InFlight      puts, words and messages under way   CallBuffers   registers a call's buffers
//     EagerInbox    messages of small calls              DeviceMemory  GPUDirect RDMA and its flush
//     Teardown      takes leave of the peers             FailureWords  raise, stop
#pragma once

#include <memory>
#include <vector>

#include "hier/transport.hpp"
#include "net/ucx/device/device_memory.hpp"
#include "net/ucx/lane/call_buffers.hpp"
#include "net/ucx/lane/eager_inbox.hpp"
#include "net/ucx/lane/failure_words.hpp"
#include "net/ucx/lane/in_flight.hpp"
#include "net/ucx/lane/lane_state.hpp"
#include "net/ucx/lane/teardown.hpp"
#include "net/ucx/lane/wireup.hpp"

namespace hier {

class UcxLane final {
public:
    // `is_partner[i]`: this rank exchanges anything with rank i of the rail's group, which is on another
    // node, and i with it. `board` has a slot for each.
    UcxLane(std::shared_ptr<UcxWorker> worker, RailBoard board, const std::vector<bool>& is_partner,
            int depth);
    UcxLane(const UcxLane&) = delete;
    UcxLane& operator=(const UcxLane&) = delete;
    ~UcxLane();

    // Collective over the rail's group: hears how to reach every partner. Connects to the next partner and to
    // those whose next one this rank is, and proves it with a first signal, within a bound. Throws on all
    // ranks or on none. `keep_alive` is called while it waits, for the caller's own communication. After a
    // failure, too, the lane is to be retired.
    void connect(const Group& group, void (*keep_alive)())
    {
        wireup_.connect(group, inbox_.number(), keep_alive);
    }
    // Connects to a partner, unless that has been done. Does not wait.
    Status reach(int peer);
    // After stop(), between two collectives: tells the failure to peers that have answered only now.
    void answer_late();
    // One step of taking leave (retired_lanes.hpp). True: nobody writes to our board any more.
    bool leave();
    UcxLane* next_retired = nullptr;  // likewise

    LaneState& state() { return state_; }
    CallBuffers& buffers() { return buffers_; }
    DeviceMemory& device_memory() { return device_; }
    FailureWords& failure() { return failure_; }

    // As Transport's.
    Status begin(const Binding& binding);
    Status announce(int peer);
    Status enter(int peer);
    Status announced(int peer);
    Status entered(int peer);
    Status put(const Transfer& transfer);
    Status drain(int peer, std::uint32_t op);
    std::uint32_t arrived(int peer);
    bool is_lost(int peer);
    Status progress(Completions& completions);
    bool idle();
    void end();
    void tell(std::uint32_t heartbeat);
    std::uint32_t heard();
    bool have_parts_come();
    bool may_write(int peer, std::uint32_t count);

private:
    // Takes in what a peer has announced, if it is new.
    Status take_announcement(int peer);
    void take_news();
    Status let_in(int peer);

    LaneState state_;
    const bool is_tcp_;
    InFlight flights_;
    EagerInbox inbox_;
    Wireup wireup_;
    FailureWords failure_;
    DeviceMemory device_;
    CallBuffers buffers_;
    Teardown teardown_;
};

}  // namespace hier
