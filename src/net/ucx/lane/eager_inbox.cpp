// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/eager_inbox.hpp"

#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "base/disagreement.hpp"
#include "base/log.hpp"

namespace hier {

void EagerInbox::take_message(const MessageHead& head, const std::byte* data, std::size_t bytes)
{
    if (head.from >= lane_.peers.size()) return refuse_sender(head);
    if (head.is_word()) return take_word(head);
    if (is_over(head.sequence)) return tell_of_late_data(head, bytes);
    // A rank that is in a later call has been in this one, too.
    LanePeer& peer = lane_.peers[head.from];
    std::atomic_ref(peer.called).store(head.sequence, std::memory_order_release);
    const Binding& binding = lane_.binding;
    if (!lane_.is_bound || head.sequence > binding.sequence) return keep_early(head, data, bytes);
    if (bytes == 0 && (!binding.eager || head.shape == binding.shape())) return;
    const Region& into = binding.rail_target();
    const std::size_t place = binding.place_of(head.from);
    const bool is_bounce = binding.has_bounce();
    if (!binding.eager ||
        !is_inside(head, bytes, binding.shape(), into.length - place, is_bounce)) {
        if (failed(lane_.own_failure)) return;
        lane_.own_failure =
            refuse_shape(binding.shape(), head.shape, "rail", static_cast<int>(head.from));
        return;
    }
    std::memcpy(into.base + place + head.target(is_bounce), data, bytes);
    std::atomic_ref(peer.got).store(Signal::encode(head.sequence, head.count),
                                    std::memory_order_release);
}

// A rank ends a call when it has its data, so a drain behind the data may come later. A rank that
// exchanges nothing on the rail seldom looks there. The drain of the set-up (call 0) may come then.
bool EagerInbox::is_over(std::uint64_t sequence) const
{
    const std::uint64_t last = lane_.binding.sequence;
    return lane_.is_bound ? sequence < last : sequence <= last;
}

// A drain has no data. Data comes so late only if the call has failed here, and that has been told.
void EagerInbox::tell_of_late_data(const MessageHead& head, std::size_t bytes)
{
    if (bytes == 0) return;
    log(HIER_LOG_DEBUG, "%zu bytes of rail rank %u for call %llu, which is over, are dropped",
        bytes, head.from, static_cast<unsigned long long>(head.sequence));
}

// No rank of this program sends that.
void EagerInbox::refuse_sender(const MessageHead& head)
{
    log(HIER_LOG_ERROR, "a message names its sender as rail rank %u of %zu", head.from,
        lane_.peers.size());
    if (!failed(lane_.own_failure)) lane_.own_failure = Status::transport_error;
}

void EagerInbox::take_word(const MessageHead& head)
{
    LanePeer& peer = lane_.peers[head.from];
    if (head.sequence == MessageHead::goodbye) {
        std::atomic_ref(lane_.board.slot(head.from).goodbye).store(1, std::memory_order_release);
    } else {
        (head.sequence == MessageHead::hello ? peer.has_greeted : peer.has_welcomed_us) = true;
        lane_.has_news = true;
    }
}

// UCX is the caller, and knows no exceptions. A message that is lost fails the call that runs, or else
// the next.
void EagerInbox::keep_early(const MessageHead& head, const std::byte* data, std::size_t bytes)
{
    try {
        if (early_used_ == early_.size()) early_.emplace_back();
        Early& early = early_[early_used_];
        early.data.assign(data, data + bytes);
        early.head = head;
        early_used_++;
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "no memory for a message of %zu bytes that has come early", bytes);
        lane_.own_failure = Status::out_of_memory;
    }
}

// A message of a call that is later still is kept once more.
void EagerInbox::begin()
{
    std::swap(early_, taken_);
    const std::size_t kept = std::exchange(early_used_, std::size_t{0});
    for (std::size_t i = 0; i < kept; i++) {
        const Early& early = taken_[i];
        take_message(early.head, early.data.data(), early.data.size());
    }
}

}  // namespace hier
