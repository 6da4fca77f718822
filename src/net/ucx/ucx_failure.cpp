// SPDX-License-Identifier: BSD-3-Clause
// UcxLane after a failure: who is told, and who may still write.
//
//   raise   -- failure ------------------>  every peer, at once
//   stop    -- the puts before, stopped ->  this rank's puts have all landed
#include <cstddef>

#include "net/ucx/ucx_lane.hpp"

namespace hier {

// As data: a signal would be held back where a put has failed.
void UcxLane::put_word(int peer_index, std::uint64_t to, const std::uint64_t& word)
{
    Flight& flight = take_flight(peer_index, no_op);
    (void)launch(flight, &word, sizeof word, to,
                 peers_[static_cast<std::size_t>(peer_index)].board_key);
}

void UcxLane::raise(Status status)
{
    raised_ = true;
    const std::lock_guard lock(worker_->mutex());
    failure_word_ = static_cast<std::uint64_t>(status);
    for (std::size_t i = 0; i < peers_.size(); i++) {
        if (peers_[i].endpoint != nullptr)
            put_word(static_cast<int>(i), peers_[i].failure, failure_word_);
    }
}

// Nothing is in flight. Over TCP the word is sent twice, as only what comes behind shows that it has
// gone: who has failed makes no more calls.
void UcxLane::stop()
{
    static const std::uint64_t yes = 1;
    const std::lock_guard lock(worker_->mutex());
    if (worker_->signal_order() != SignalOrder::by_lane) (void)ucp_worker_fence(worker_->handle());
    const int words = worker_->signal_order() == SignalOrder::by_lane ? 2 : 1;
    for (std::size_t i = 0; i < peers_.size(); i++) {
        for (int word = 0; word < words && peers_[i].endpoint != nullptr; word++)
            put_word(static_cast<int>(i), peers_[i].board + offsetof(RailSlot, stopped), yes);
    }
}

// (Messages are not taken any more after the call, and a bounce buffer stays.)
bool UcxLane::may_write(int peer_index, std::uint32_t count)
{
    const auto i = static_cast<std::size_t>(peer_index);
    if (peers_[i].let_in < binding_.sequence || binding_.bounce.base != nullptr) return false;
    RailSlot& slot = board_.slot(i);
    const bool writes_no_more =
        RailBoard::read(slot.stopped) != 0 || RailBoard::read(slot.goodbye) != 0;
    return !writes_no_more && landed(i) < count;
}

}  // namespace hier
