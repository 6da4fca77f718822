// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/failure_words.hpp"

#include <cstddef>
#include <mutex>

namespace hier {

void FailureWords::raise(Status status)
{
    const std::lock_guard lock(state_.worker->mutex());
    failure_ = static_cast<std::uint64_t>(status);
    for (const int i : state_.connected) {
        if (state_.peer(i).is_open) say_failed(i);
    }
}

// Nothing is in flight.
void FailureWords::stop()
{
    const std::lock_guard lock(state_.worker->mutex());
    has_stopped_ = true;
    if (state_.worker->signal_order() != SignalOrder::by_lane)
        (void)ucp_worker_fence(state_.worker->handle());
    for (const int i : state_.connected) {
        if (state_.peer(i).is_open) say_stopped(i);
    }
}

// There has been no put to this peer, so "stopped" comes behind all of them.
void FailureWords::tell(int peer)
{
    if (is_raised()) say_failed(peer);
    if (has_stopped_) say_stopped(peer);
}

void FailureWords::say_failed(int peer)
{
    flights_.put_word(peer, state_.peer(peer).failure, failure_);
}

// Over TCP the word is sent twice, as only what comes behind shows that it has gone: a rank that has failed
// makes no more calls.
void FailureWords::say_stopped(int peer)
{
    static const std::uint64_t yes = 1;
    const int words = state_.worker->signal_order() == SignalOrder::by_lane ? 2 : 1;
    for (int word = 0; word < words; word++)
        flights_.put_word(peer, state_.peer(peer).board + offsetof(RailSlot, stopped), yes);
}

}  // namespace hier
