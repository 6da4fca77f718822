// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/in_flight.hpp"

#include <algorithm>
#include <cstddef>

#include "base/log.hpp"
#include "net/ucx/ucx_workers.hpp"

namespace hier {
namespace {

// Nobody misses a transfer of a lane that is leaving, for a spawned process may have ended. Nor does
// anybody miss a word on a connection that is known to be broken.
bool is_missed(const Flight& flight)
{
    if (flight.owner == nullptr) return true;
    const LaneState& lane = flight.owner->lane();
    return !lane.is_leaving &&
           (flight.op != Flight::no_op || !lane.worker->is_broken(lane.peer(flight.peer).endpoint));
}

void report_error(const Flight& flight, const char* what, ucs_status_t status)
{
    // A goodbye, say, that was not acknowledged before the process left.
    if (status == UCS_ERR_CANCELED && UcxWorkers::are_quiet()) return;
    if (!is_missed(flight)) {
        log(HIER_LOG_DEBUG, "UCX %s to rail rank %d: %s", what, flight.peer,
            ucs_status_string(status));
    } else if (flight.end != nullptr) {
        log(HIER_LOG_ERROR, "UCX %s that flushes device memory: %s", what,
            ucs_status_string(status));
    } else {
        log(HIER_LOG_ERROR, "UCX %s to rail rank %d: %s", what, flight.peer,
            ucs_status_string(status));
    }
}

void on_complete(void* request, ucs_status_t status, void* user_data)
{
    Flight& flight = *static_cast<Flight*>(user_data);
    if (status != UCS_OK) {
        report_error(flight, "transfer", status);
        flight.status = Status::transport_error;
    }
    ucp_request_free(request);
    if (flight.owner != nullptr) flight.owner->part_done(flight);
}

}  // namespace

ucp_request_param_t request_of(Flight& flight)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_complete;
    param.user_data = &flight;
    return param;
}

InFlight::InFlight(LaneState& lane, int depth) : lane_(lane)
{
    // Puts, and for each peer an announcement, a drain, a failure and two words that it was the last.
    const std::size_t max = static_cast<std::size_t>(depth) + 5 * lane.peers.size();
    flights_.reserve(max);
    free_.reserve(max);
    done_.reserve(max);
    reported_.reserve(max);  // the two change places
}

Flight& InFlight::take(int peer, std::uint32_t op)
{
    if (free_.empty()) {
        free_.reserve(flights_.size() + 1);  // release() must not throw into UCX
        free_.push_back(flights_.emplace_back(std::make_unique<Flight>()).get());
    }
    Flight& flight = *free_.back();
    free_.pop_back();
    flight = Flight{};
    flight.owner = this;
    flight.op = op;
    flight.peer = peer;
    count_++;
    return flight;
}

void InFlight::release(Flight& flight)
{
    count_--;
    if (flight.is_aside) count_aside_--;
    free_.push_back(&flight);
}

void InFlight::abandon()
{
    if (count_ == 0) return;
    for (auto& flight : flights_) {
        flight->owner = nullptr;
        (void)flight.release();
    }
}

// Signals count: after a chunk that failed, no later one may be signalled.
bool InFlight::may_signal(Flight& flight)
{
    LanePeer& peer = lane_.peer(flight.peer);
    if (failed(flight.status)) peer.lost = true;
    if (peer.lost && !failed(flight.status)) flight.status = Status::transport_error;
    return !peer.lost;
}

Status InFlight::launch(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                        const UcxRemoteKey& key)
{
    const SignalOrder order = lane_.worker->signal_order();
    flight.parts = 1;  // ours, so that a request that completes at once does not end the flight
    if (bytes > 0) {
        post_data(flight, data, bytes, to, key);
        if (flight.signal_to != 0 && order == SignalOrder::by_flush) {
            flight.signal_after_flush = true;
            post_flush(flight);
        } else if (flight.signal_to != 0 && order == SignalOrder::by_fence) {
            track(flight, UCS_STATUS_PTR(ucp_worker_fence(lane_.worker->handle())), "fence");
        }
    }
    if (flight.signal_to != 0 && !flight.signal_after_flush && may_signal(flight)) {
        post(flight, &flight.signal, sizeof flight.signal, flight.signal_to,
             lane_.peer(flight.peer).board_key);
        (void)may_signal(flight);  // later, if this one has failed
    }
    if (--flight.parts > 0) return Status::in_progress;
    if (flight.signal_after_flush && !signal_flushed(flight)) return Status::in_progress;
    const Status status = flight.status;
    release(flight);
    return status;
}

// The flush has seen the data acknowledged. A host that orders loosely what devices write (PCI's relaxed
// ordering) may still see the word before the data. A word behind a fence is a strict write. True:
// nothing of the flight is on its way.
bool InFlight::signal_flushed(Flight& flight)
{
    flight.signal_after_flush = false;
    track(flight, UCS_STATUS_PTR(ucp_worker_fence(lane_.worker->handle())), "fence");
    return !may_signal(flight) || post(flight, &flight.signal, sizeof flight.signal,
                                       flight.signal_to, lane_.peer(flight.peer).board_key);
}

Status InFlight::send_word(int peer_index, std::uint32_t op, std::size_t offset, std::uint64_t word)
{
    const LanePeer& peer = lane_.peer(peer_index);
    Flight& flight = take(peer_index, op);
    flight.signal_to = peer.board + offset;
    flight.signal = word;
    return launch(flight, nullptr, 0, 0, peer.board_key);
}

void InFlight::put_word(int peer, std::uint64_t to, const std::uint64_t& word)
{
    Flight& flight = take(peer, Flight::no_op);
    (void)launch(flight, &word, sizeof word, to, lane_.peer(peer).board_key);
}

Status InFlight::send_message(int peer_index, std::uint32_t op, MessageHead head,
                              const std::byte* data, std::size_t bytes)
{
    const LanePeer& peer = lane_.peer(peer_index);
    Flight& flight = take(peer_index, op);
    head.sink = peer.sink;
    head.from = static_cast<std::uint32_t>((peer.board - peer.failure) / sizeof(RailSlot) - 1);
    // Until the peer has answered, a word to it may be on its way for as long as the peer computes.
    flight.is_aside = head.is_word() && !peer.is_open;
    if (flight.is_aside) count_aside_++;
    if (!head.is_word()) head.sequence = lane_.binding.sequence;
    head.shape = lane_.binding.shape();
    flight.head = head;
    flight.parts = 1;  // ours, as in launch()
    if (may_signal(flight)) {
        ucp_request_param_t param = request_of(flight);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
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

void InFlight::flush_peer(int peer)
{
    Flight& flight = take(peer, Flight::no_op);
    if (post_flush(flight)) release(flight);
}

// Mostly the kernel has taken all, and a flush of the worker says so at once. (UCX asks its interfaces
// first, and one over TCP knows what it has buffered.) Otherwise it may have to wait for peers to
// acknowledge puts of earlier calls, and nobody waits for it. A flush of the endpoint would send a
// request for an acknowledgement in any case.
bool InFlight::flush_worker(int peer)
{
    if (is_flushing_) return false;
    Flight& flush = take(peer, Flight::no_op);
    flush.is_worker_flush = true;
    is_flushing_ = !post_flush(flush);
    if (is_flushing_) return false;
    const bool is_empty = !failed(flush.status);
    release(flush);
    return is_empty;
}

// The sender hears of each part when it is done, and the receiver when it comes. A fence holds back only a
// limited number of puts (max_in_flight). So data stays whole there: RDMA is fast.
void InFlight::post_data(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                         const UcxRemoteKey& key)
{
    constexpr std::size_t part = 1 << 20;  // one second at 1 MB/s
    const bool is_whole = lane_.worker->signal_order() == SignalOrder::by_fence;
    for (std::size_t done = 0; done < bytes && !failed(flight.status);) {
        const std::size_t next = is_whole ? bytes : std::min(part, bytes - done);
        post(flight, static_cast<const std::byte*>(data) + done, next, to + done, key);
        done += next;
        if (done < bytes)
            (void)send_word(flight.peer, Flight::no_op, offsetof(RailSlot, parts),
                            ++lane_.peer(flight.peer).parts);
    }
}

// True when it is complete at once.
bool InFlight::post(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                    const UcxRemoteKey& key)
{
    ucp_request_param_t param = request_of(flight);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = data == &flight.signal ? UCS_MEMORY_TYPE_HOST : flight.data_type;
    return track(flight,
                 ucp_put_nbx(lane_.peer(flight.peer).endpoint, data, bytes, to, key.get(), &param),
                 "put");
}

bool InFlight::post_flush(Flight& flight)
{
    const ucp_request_param_t param = request_of(flight);
    return track(flight,
                 flight.is_worker_flush
                     ? ucp_worker_flush_nbx(lane_.worker->handle(), &param)
                     : ucp_ep_flush_nbx(lane_.peer(flight.peer).endpoint, &param),
                 "flush");
}

bool InFlight::track(Flight& flight, ucs_status_ptr_t request, const char* what)
{
    if (UCS_PTR_IS_PTR(request)) {
        flight.parts++;
        return false;
    }
    const ucs_status_t status = UCS_PTR_STATUS(request);
    if (status != UCS_OK) {
        report_error(flight, what, status);
        flight.status = Status::transport_error;
    }
    return true;
}

void InFlight::part_done(Flight& flight)
{
    --flight.parts;
    has_moved_ = has_moved_ || flight.op != Flight::no_op;
    // The other parts may never come back: UCX keeps what waits for a connection that has gone.
    const bool is_ours = flight.end == nullptr && !flight.is_worker_flush;
    if (flight.parts > 0) {
        if (is_ours && failed(flight.status)) lane_.own_failure = flight.status;
        return;
    }
    if (flight.is_worker_flush) {  // nobody waits for it, and it may be another team's that failed
        is_flushing_ = false;
        return release(flight);
    }
    if (flight.end != nullptr) return flight.end->ended(flight);
    if (flight.signal_after_flush && !signal_flushed(flight)) return;
    // A failed announcement has no op that waits for it.
    if (flight.op != Flight::no_op) {
        done_.push_back({flight.op, flight.status});
    } else if (failed(flight.status)) {
        lane_.own_failure = flight.status;
    }
    release(flight);
}

void InFlight::report(Completions& completions)
{
    // Clears reported_, whatever complete() throws.
    // NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): nobody copies the one object
    struct Clear {
        ~Clear() { all.clear(); }
        std::vector<Done>& all;
    } const clear{reported_};
    if (reported_move_) completions.moved_bytes();
    for (const Done& done : reported_) completions.complete(done.op, done.status);
}

}  // namespace hier
