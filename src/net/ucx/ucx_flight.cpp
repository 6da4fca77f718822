// SPDX-License-Identifier: BSD-3-Clause
// What UcxLane has on its way: requests, their order, their completion. All of it under the
// worker's mutex.
#include "base/log.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {

UcxLane::Flight& UcxLane::take_flight(int peer, std::uint32_t op)
{
    if (free_flights_.empty()) {
        free_flights_.reserve(flights_.size() + 1);  // release() must not throw into UCX
        free_flights_.push_back(flights_.emplace_back(std::make_unique<Flight>()).get());
    }
    Flight& flight = *free_flights_.back();
    free_flights_.pop_back();
    flight = Flight{};
    flight.rail = this;
    flight.op = op;
    flight.peer = peer;
    in_flight_++;
    return flight;
}

void UcxLane::release(Flight& flight)
{
    in_flight_--;
    free_flights_.push_back(&flight);
}

// Signals count: after a chunk that failed, no later one may be signalled.
bool UcxLane::may_signal(Flight& flight)
{
    Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    if (failed(flight.status)) peer.lost = true;
    if (peer.lost && !failed(flight.status)) flight.status = Status::transport_error;
    return !peer.lost;
}

// `bytes` bytes of data (none for 0), then the flight's signal behind them, if it has one.
Status UcxLane::launch(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                       const UcxRemoteKey& key)
{
    const Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    flight.parts = 1;  // ours, so that a request that completes at once does not end the flight
    if (bytes > 0) {
        post(flight, data, bytes, to, key);
        if (flight.signal_to != 0 && worker_->signal_order() == SignalOrder::by_flush) {
            flight.signal_after_flush = true;
            post_flush(flight);
        } else if (flight.signal_to != 0 && worker_->signal_order() == SignalOrder::by_fence) {
            fence(flight);
        }
    }
    if (flight.signal_to != 0 && !flight.signal_after_flush && may_signal(flight)) {
        post(flight, &flight.signal, sizeof flight.signal, flight.signal_to, peer.board_key);
        (void)may_signal(flight);  // later, if this one has failed
    }
    if (--flight.parts > 0) return Status::in_progress;
    if (flight.signal_after_flush && !signal_flushed(flight)) return Status::in_progress;
    const Status status = flight.status;
    release(flight);
    return status;
}

void UcxLane::fence(Flight& flight)
{
    track(flight, UCS_STATUS_PTR(ucp_worker_fence(worker_->handle())), "fence");
}

// What was flushed has been acknowledged, but a host that orders loosely what devices write (PCI's
// relaxed ordering) may still see the word before it: a word behind a fence is a strict write. True:
// nothing of the flight is on its way.
bool UcxLane::signal_flushed(Flight& flight)
{
    flight.signal_after_flush = false;
    fence(flight);
    const Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    return !may_signal(flight) ||
           post(flight, &flight.signal, sizeof flight.signal, flight.signal_to, peer.board_key);
}

// One word into our slot on the peer's board.
Status UcxLane::send_word(int peer_index, std::uint32_t op, std::size_t offset, std::uint64_t word)
{
    const Peer& peer = peers_[static_cast<std::size_t>(peer_index)];
    Flight& flight = take_flight(peer_index, op);
    flight.signal_to = peer.board + offset;
    flight.signal = word;
    return launch(flight, nullptr, 0, 0, peer.board_key);
}

// True when it is complete at once.
bool UcxLane::post(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                   const UcxRemoteKey& key)
{
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.cb.send = on_complete;
    param.user_data = &flight;
    const bool is_on_device = flight.is_on_device && data != &flight.signal;
    param.memory_type = is_on_device ? direct_->memory_type() : UCS_MEMORY_TYPE_HOST;
    const Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    return track(flight, ucp_put_nbx(peer.endpoint, data, bytes, to, key.get(), &param), "put");
}

bool UcxLane::post_flush(Flight& flight)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_complete;
    param.user_data = &flight;
    const Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    return track(flight,
                 flight.is_worker_flush ? ucp_worker_flush_nbx(worker_->handle(), &param)
                                        : ucp_ep_flush_nbx(peer.endpoint, &param),
                 "flush");
}

bool UcxLane::track(Flight& flight, ucs_status_ptr_t request, const char* what)
{
    if (UCS_PTR_IS_PTR(request)) {
        flight.parts++;
        return false;
    }
    const ucs_status_t status = UCS_PTR_STATUS(request);
    if (status != UCS_OK) {
        report(flight, what, status);
        flight.status = Status::transport_error;
    }
    return true;
}

// Not by anybody when the rail is leaving, for a process that was spawned may have ended; nor when it
// is a word by a connection that is known to be broken.
bool UcxLane::is_missed(const Flight& flight) const
{
    const Peer& peer = peers_[static_cast<std::size_t>(flight.peer)];
    return leaving_ == Leaving::no && (flight.op != no_op || !worker_->is_broken(peer.endpoint));
}

void UcxLane::report(const Flight& flight, const char* what, ucs_status_t status)
{
    // What was not acknowledged any more, a goodbye say, before the process left.
    if (status == UCS_ERR_CANCELED && UcxWorker::is_quiet()) return;
    const bool is_missed = flight.rail == nullptr || flight.rail->is_missed(flight);
    if (!is_missed) {
        log(HIER_LOG_DEBUG, "UCX %s to rail rank %d: %s", what, flight.peer,
            ucs_status_string(status));
    } else if (flight.is_probe) {
        log(HIER_LOG_ERROR, "UCX %s that flushes device memory: %s", what,
            ucs_status_string(status));
    } else {
        log(HIER_LOG_ERROR, "UCX %s to rail rank %d: %s", what, flight.peer,
            ucs_status_string(status));
    }
}

void UcxLane::on_complete(void* request, ucs_status_t status, void* user_data)
{
    Flight& flight = *static_cast<Flight*>(user_data);
    if (status != UCS_OK) {
        report(flight, "transfer", status);
        flight.status = Status::transport_error;
    }
    ucp_request_free(request);
    if (flight.rail != nullptr) flight.rail->part_done(flight);
}

void UcxLane::part_done(Flight& flight)
{
    if (--flight.parts > 0) return;
    if (flight.is_worker_flush) {  // nobody waits for it, and it may be another team's that failed
        is_flushing_ = false;
        return release(flight);
    }
    if (flight.is_probe) return probe_done(flight);
    if (flight.signal_after_flush && !signal_flushed(flight)) return;
    // A failed announcement has no op that waits for it.
    if (flight.op != no_op) {
        done_.push_back({flight.op, flight.status});
    } else if (failed(flight.status)) {
        own_failure_ = flight.status;
    }
    release(flight);
}

}  // namespace hier
