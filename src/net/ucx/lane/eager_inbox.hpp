// SPDX-License-Identifier: BSD-3-Clause
// The messages of small calls. Each put is one message, data and signal in one, which the receiver's UCX
// keeps until somebody progresses its worker. All of it is used under the worker's mutex.
//
//   sender                                receiver, in ucp_worker_progress
//   put        -- {call, count, bytes} -->  in this call: into the rail's target, then counted
//                                           not yet in it: kept for begin()
//   drain      -- {call, 0} ------------->  where UCX has kept something back, and over TCP after
//                                           large calls and after the set-up, which is call 0:
//                                           taken only when what went before has gone
//   connect    -- {hello}, {welcome} ---->  see wireup.hpp
//   leave      -- {goodbye} ------------->  over TCP: the sender's lane sends no more
//
// Nobody announces anything. A message says that its sender is in the call; so does the heartbeat of a
// rank that waits itself. A sender may be some calls ahead: ranks without data exchange nothing in a
// call that is not eager.
#pragma once

#include <cstdint>
#include <vector>

#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class EagerInbox final : private MessageSink {
public:
    explicit EagerInbox(LaneState& lane) : lane_(lane) {}

    // From open() to close() the worker hands messages over.
    void open() { number_ = lane_.worker->add_sink(*this); }
    void close() { lane_.worker->remove_sink(number_); }
    // By which peers address this inbox.
    std::uint64_t number() const { return number_; }

    // The collective of the lane's binding begins: takes the messages that came before.
    void begin();

private:
    // A message of a later call than the one that runs.
    struct Early {
        MessageHead head;
        std::vector<std::byte> data;
    };
    void take_message(const MessageHead& head, const std::byte* data, std::size_t bytes) override;
    bool is_over(std::uint64_t sequence) const;
    void tell_of_late_data(const MessageHead& head, std::size_t bytes);
    void refuse_sender(const MessageHead& head);
    void take_word(const MessageHead& head);
    void keep_early(const MessageHead& head, const std::byte* data, std::size_t bytes);

    LaneState& lane_;
    std::uint64_t number_ = 0;
    std::vector<Early> early_;  // as many as ever waited at a time; those in use come first
    std::vector<Early> taken_;
    std::size_t early_used_ = 0;
};

}  // namespace hier
