// SPDX-License-Identifier: BSD-3-Clause
// Small calls: one message a put, data and signal in one, which its receiver's UCX keeps until
// somebody looks. All of it under the worker's mutex.
//
//   sender                                receiver, in ucp_worker_progress
//   put        -- {call, count, bytes} -->  in this call: into the rail's target, then counted
//                                           not yet in it: kept for begin()
//   drain      -- {call, 0} ------------->  where UCX has kept something back, and over TCP after
//                                           large calls: taken only when what went before has gone
//   leave      -- {goodbye} ------------->  over TCP: the sender's rail sends no more
//
// Nobody announces anything: a message, or the heartbeat of a rank that waits itself, says that it is in
// the call. A rank is at most one call ahead of the others: it has their shards of the last one.
#include <atomic>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {

Status UcxLane::send_message(int peer_index, std::uint32_t op, MessageHead head,
                             const std::byte* data, std::size_t bytes)
{
    Peer& peer = peers_[static_cast<std::size_t>(peer_index)];
    Flight& flight = take_flight(peer_index, op);
    head.sink = peer.sink;
    head.from = static_cast<std::uint32_t>((peer.board - peer.failure) / sizeof(RailSlot) - 1);
    if (head.sequence != MessageHead::goodbye) head.sequence = binding_.sequence;
    head.total = binding_.receive.length;
    flight.head = head;
    flight.parts = 1;  // ours, as in launch()
    if (may_signal(flight)) {
        ucp_request_param_t param{};
        param.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
        param.cb.send = on_complete;
        param.user_data = &flight;
        param.flags = UCP_AM_SEND_FLAG_EAGER;
        track(flight,
              ucp_am_send_nbx(peer.endpoint, MessageSink::id, &flight.head, sizeof flight.head,
                              data, bytes, &param),
              "message");
        (void)may_signal(flight);
    }
    if (--flight.parts > 0) return Status::in_progress;
    const Status status = flight.status;
    release(flight);
    return status;
}

// Mostly the kernel has taken all, and a flush of the worker says so at once (UCX asks its
// interfaces first, and one over TCP knows what it has buffered). Where it does not, it may have to
// wait for peers to acknowledge puts of earlier calls, and nobody waits for it. (A flush of the
// endpoint would send a request for an acknowledgement in any case.)
Status UcxLane::drain_messages(int peer, std::uint32_t op)
{
    if (!is_flushing_) {
        Flight& flush = take_flight(peer, no_op);
        flush.is_worker_flush = true;
        is_flushing_ = !post_flush(flush);
        if (!is_flushing_) {
            const bool is_empty = !failed(flush.status);
            release(flush);
            if (is_empty) return Status::ok;
        }
    }
    return send_message(peer, op, {}, nullptr, 0);
}

void UcxLane::take_message(const MessageHead& head, const std::byte* data, std::size_t bytes)
{
    if (head.from >= peers_.size()) return;
    if (head.sequence == MessageHead::goodbye) {
        std::atomic_ref(board_.slot(head.from).goodbye).store(1, std::memory_order_release);
        return;
    }
    const std::uint64_t current = is_bound_ ? binding_.sequence : 0;
    if (head.sequence < current) return;  // a drain's
    // Whoever is in a later call has been in this one, too.
    std::atomic_ref(peers_[head.from].called).store(head.sequence, std::memory_order_release);
    if (head.sequence > current) return keep_early(head, data, bytes);
    if (bytes == 0) return;
    const Region& into = binding_.rail_target();
    if (!binding_.eager || head.total != binding_.receive.length ||
        !fits(head.offset, bytes, into.length)) {
        if (failed(own_failure_)) return;
        log(HIER_LOG_ERROR,
            "ranks disagree on the size of a call: %zu bytes in all here, %zu at rail rank "
            "%u",
            binding_.receive.length, static_cast<std::size_t>(head.total), head.from);
        own_failure_ = Status::mismatch;
        return;
    }
    Peer& peer = peers_[head.from];
    std::memcpy(into.base + head.offset, data, bytes);
    std::atomic_ref(peer.got).store(Signal::encode(head.sequence, head.count),
                                    std::memory_order_release);
}

// UCX calls, which knows no exceptions. What is lost fails the call that runs, or else the next.
void UcxLane::keep_early(const MessageHead& head, const std::byte* data, std::size_t bytes)
{
    try {
        if (early_used_ == early_.size()) early_.emplace_back();
        Early& early = early_[early_used_];
        early.data.assign(data, data + bytes);
        early.head = head;
        early_used_++;
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "no memory for a message of %zu bytes that has come early", bytes);
        own_failure_ = Status::out_of_memory;
    }
}

// What came before begin(). Of a call that is later still nothing can have come.
void UcxLane::take_early()
{
    std::swap(early_, taken_);
    const std::size_t kept = std::exchange(early_used_, std::size_t{0});
    for (std::size_t i = 0; i < kept; i++) {
        const Early& early = taken_[i];
        take_message(early.head, early.data.data(), early.data.size());
    }
}

}  // namespace hier
