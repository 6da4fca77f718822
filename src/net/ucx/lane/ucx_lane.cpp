// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/ucx_lane.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/disagreement.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "net/ucx/ucx_workers.hpp"

namespace hier {

UcxLane::UcxLane(std::shared_ptr<UcxWorker> worker, RailBoard board,
                 const std::vector<bool>& is_partner, int depth)
    : state_{.worker = std::move(worker),
             .board = std::move(board),
             .is_partner = is_partner,
             .peers = std::vector<LanePeer>(is_partner.size())},
      is_tcp_(is_tcp(state_.worker->choice())), flights_(state_, depth), inbox_(state_),
      wireup_(*this, state_, flights_), failure_(state_, flights_), device_(state_, flights_),
      buffers_(state_, device_), teardown_(state_, flights_)
{
    state_.connected.reserve(is_partner.size());
    const std::lock_guard lock(state_.worker->mutex());
    inbox_.open();
}

// Flights that are left were given up. UCX may still complete them when the lane is gone.
UcxLane::~UcxLane()
{
    const std::lock_guard lock(state_.worker->mutex());
    inbox_.close();
    flights_.abandon();
    state_.peers.clear();
    buffers_.reset();
    const RailBoard board = std::move(state_.board);  // goes under the lock
    device_.reset();
}

Status UcxLane::reach(int peer)
{
    const std::lock_guard lock(state_.worker->mutex());
    if (state_.peer(peer).endpoint != nullptr) return Status::ok;
    try {
        wireup_.reach(peer);
        return Status::ok;
    } catch (const SetupError& e) {
        log(HIER_LOG_ERROR, "rail rank %d cannot be connected: %s", peer, e.what());
        state_.worker->keep();
        return Status::transport_error;
    }
}

// Welcomes peers that have greeted, and tells those that have opened their boards what was kept back.
void UcxLane::take_news()
{
    for (const int i : state_.connected) {
        LanePeer& peer = state_.peer(i);
        wireup_.welcome(i);
        if (peer.is_open || !peer.has_welcomed_us) continue;
        peer.is_open = true;
        failure_.tell(i);
        const bool may_enter = state_.is_bound && !failure_.is_raised();
        if (!may_enter || peer.asked_in != state_.binding.sequence) continue;
        const Status status = let_in(i);
        if (failed(status)) state_.own_failure = status;
    }
    state_.has_news = false;
}

void UcxLane::answer_late()
{
    const std::lock_guard lock(state_.worker->mutex());
    if (state_.has_news) take_news();
}

bool UcxLane::leave()
{
    if (!wireup_.is_known()) return true;
    const std::lock_guard lock(state_.worker->mutex());
    if (UcxWorkers::are_quiet()) return false;  // goes with the worker
    return teardown_.step();
}

bool UcxLane::idle()
{
    const std::lock_guard lock(state_.worker->mutex());
    return flights_.awaited() == 0;
}

Status UcxLane::begin(const Binding& binding)
{
    const std::lock_guard lock(state_.worker->mutex());
    // A failure that has come is seen before anything is put into the buffer of the rank that raised it. A call by
    // messages puts nothing there. But behind puts, those of set-up among them, this rank reads first that they were
    // acknowledged: else drain() takes them for kept back, and sends one message more.
    constexpr int passes_on_entry = 4096;
    const bool had_puts = !state_.binding.eager;
    if (!binding.eager || had_puts) state_.worker->progress(passes_on_entry);
    state_.binding = binding;
    state_.is_bound = true;
    inbox_.begin();
    if (state_.has_failed()) return Status::peer_failed;
    if (binding.eager || failed(state_.own_failure)) return state_.own_failure;
    return buffers_.announce();
}

void UcxLane::end()
{
    const std::lock_guard lock(state_.worker->mutex());
    // After a failure a peer may still be writing. It would break the connection of the processes if its
    // target were registered no more.
    if (!failure_.is_raised()) buffers_.reset();
    state_.is_bound = false;
    device_.end();
}

Status UcxLane::announce(int peer)
{
    const std::lock_guard lock(state_.worker->mutex());
    state_.peer(peer).asked_in = state_.binding.sequence;
    return state_.peer(peer).is_open ? let_in(peer) : Status::ok;
}

Status UcxLane::let_in(int peer_index)
{
    LanePeer& peer = state_.peer(peer_index);
    const Announcement& announcement = buffers_.announcement(static_cast<std::size_t>(peer_index));
    Flight& flight = flights_.take(peer_index, Flight::no_op);
    flight.signal_to = peer.board + offsetof(RailSlot, ready);
    flight.signal = state_.binding.sequence;
    peer.let_in = state_.binding.sequence;
    const bool is_news = peer.told != announcement.version;
    peer.told = announcement.version;
    const std::size_t bytes = is_news ? offsetof(Announcement, key) + announcement.key_bytes : 0;
    const Status status =
        flights_.launch(flight, &announcement, bytes, peer.board + offsetof(RailSlot, announcement),
                        peer.board_key);
    return failed(status) ? status : Status::ok;
}

// An empty message: the peer notes whose call it belongs to.
Status UcxLane::enter(int peer)
{
    const std::lock_guard lock(state_.worker->mutex());
    const Status status = flights_.send_message(peer, Flight::no_op, {}, nullptr, 0);
    return failed(status) ? status : Status::ok;
}

Status UcxLane::entered(int peer)
{
    const std::uint64_t sequence = state_.binding.sequence;
    const bool is_in_call =
        RailBoard::read(state_.peer(peer).called) >= sequence ||
        Signal::sequence(RailBoard::read(state_.slot(peer).heartbeat)) >= sequence;
    return is_in_call ? Status::ok : Status::in_progress;
}

Status UcxLane::announced(int peer_index)
{
    LanePeer& peer = state_.peer(peer_index);
    RailSlot& slot = state_.slot(peer_index);
    const Binding& binding = state_.binding;
    if (!peer.is_open || state_.read(slot.ready, peer.seen_ready) < binding.sequence)
        return Status::in_progress;
    if (peer.known != RailBoard::read(slot.announcement.version)) {
        const Status status = take_announcement(peer_index);
        if (failed(status)) return status;
    }
    if (peer.shape == binding.shape()) return Status::ok;
    return refuse_shape(binding.shape(), peer.shape, "rail", peer_index);
}

// Reads the peer's words once.
Status UcxLane::take_announcement(int peer_index)
{
    LanePeer& peer = state_.peer(peer_index);
    const std::lock_guard lock(state_.worker->mutex());
    const Announcement theirs = state_.slot(peer_index).announcement;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
    if (const char* fault = fault_of(theirs); fault != nullptr) {
        log(HIER_LOG_ERROR, "rail rank %d announces %s", peer_index, fault);
        return Status::transport_error;
    }
    const ucs_status_t status =
        peer.buffer_key.unpack(peer.endpoint, {theirs.key.data(), theirs.key_bytes});
    if (status != UCS_OK) {
        log(HIER_LOG_ERROR, "UCX cannot use the key of rail rank %d's buffer: %s", peer_index,
            ucs_status_string(status));
        return Status::transport_error;
    }
    peer.known = theirs.version;
    peer.buffer = theirs.address;
    peer.home = theirs.home;
    peer.is_bounce = theirs.is_bounce != 0;
    peer.shape = theirs.shape;
    return Status::ok;
}

Status UcxLane::put(const Transfer& transfer)
{
    const std::lock_guard lock(state_.worker->mutex());
    LanePeer& peer = state_.peer(transfer.peer);
    const Binding& binding = state_.binding;
    const std::size_t source = transfer.slice.source;
    const std::byte* from = binding.at(
        transfer.from, transfer.from == Place::receive ? binding.in_receive(source) : source);
    if (binding.eager) {
        return flights_.send_message(
            transfer.peer, transfer.op,
            {.offset = transfer.slice.target, .packed = transfer.packed, .count = transfer.count},
            from, transfer.slice.length);
    }
    Flight& flight = flights_.take(transfer.peer, transfer.op);
    flight.signal_to = peer.board + offsetof(RailSlot, arrivals);
    flight.signal = peer.last_signal = Signal::encode(binding.sequence, transfer.count);
    const bool is_on_device = binding.region(transfer.from).memory.kind == MemoryKind::device;
    if (is_on_device) flight.data_type = device_.type();
    const std::uint64_t to =
        peer.buffer + (peer.is_bounce ? transfer.packed : transfer.slice.target - peer.home);
    return flights_.launch(flight, from, transfer.slice.length, to, peer.buffer_key);
}

// A UCX flush is no way to end a call. Over TCP it is a message of its own, which the peer answers only
// while it progresses its worker, and the peer leaves as soon as it has its data. But TCP takes something
// only when what went before has gone to the kernel: so an empty message follows. If that one is still
// stuck, nobody misses it. (No put: UCX's new protocols, seen with 1.18, complete each of them when its
// target has answered.)
//
// A NIC needs no help at all. On lanes that we do not know, a message may take another one than puts: the
// last signal goes once more.
Status UcxLane::drain(int peer, std::uint32_t op)
{
    const SignalOrder order = state_.worker->signal_order();
    if (order == SignalOrder::by_fence) return Status::ok;
    const std::lock_guard lock(state_.worker->mutex());
    if (state_.binding.eager && flights_.flush_worker(peer)) return Status::ok;
    if (state_.binding.eager || order == SignalOrder::by_lane)
        return flights_.send_message(peer, op, {}, nullptr, 0);
    // (Without a welcome there has been no put.)
    return !state_.peer(peer).is_open ? Status::ok
                                      : flights_.send_word(peer, op, offsetof(RailSlot, arrivals),
                                                           state_.peer(peer).last_signal);
}

std::uint32_t UcxLane::arrived(int peer)
{
    const auto i = static_cast<std::size_t>(peer);
    if (state_.binding.eager)
        return Signal::count(RailBoard::read(state_.peers[i].got), state_.binding.sequence);
    return device_.needs_flush() ? device_.flushed(i) : state_.landed(i);
}

bool UcxLane::is_lost(int peer)
{
    if (!state_.worker->has_broken()) return false;
    const std::lock_guard lock(state_.worker->mutex());
    return state_.worker->is_broken(state_.peer(peer).endpoint);
}

Status UcxLane::progress(Completions& completions)
{
    Status failure = Status::ok;
    {
        const std::lock_guard lock(state_.worker->mutex());
        constexpr int max_passes = 16;  // then other teams get their share
        // A message is often the last one of its call, and over TCP another pass is a system call.
        state_.worker->progress(is_tcp_ && state_.binding.eager ? 1 : max_passes);
        if (state_.has_news) take_news();
        flights_.collect();
        failure = state_.own_failure;
    }
    flights_.report(completions);
    if (failure_.is_raised()) return Status::ok;
    if (failed(failure)) return failure;
    return state_.has_failed() ? Status::peer_failed : Status::ok;
}

void UcxLane::tell(std::uint32_t heartbeat)
{
    const std::lock_guard lock(state_.worker->mutex());
    for (const int i : state_.connected) {
        const bool has_left = RailBoard::read(state_.slot(i).goodbye) != 0;
        if (!state_.peer(i).is_open || has_left) continue;
        const Status status =
            flights_.send_word(i, Flight::no_op, offsetof(RailSlot, heartbeat),
                               Signal::encode(state_.binding.sequence, heartbeat));
        if (failed(status)) state_.own_failure = status;
    }
}

std::uint32_t UcxLane::heard()
{
    std::uint32_t highest = 0;
    for (const int i : state_.connected) {
        highest = std::max(highest, Signal::count(RailBoard::read(state_.slot(i).heartbeat),
                                                  state_.binding.sequence));
    }
    return highest;
}

bool UcxLane::have_parts_come()
{
    std::uint64_t parts = 0;
    for (const int i : state_.connected) parts += RailBoard::read(state_.slot(i).parts);
    return std::exchange(state_.parts_seen, parts) != parts;
}

// (Messages are not taken any more after the call, and a bounce buffer stays.)
bool UcxLane::may_write(int peer, std::uint32_t count)
{
    const Binding& binding = state_.binding;
    if (state_.peer(peer).let_in < binding.sequence || binding.has_bounce()) return false;
    RailSlot& slot = state_.slot(peer);
    const bool writes_no_more =
        RailBoard::read(slot.stopped) != 0 || RailBoard::read(slot.goodbye) != 0;
    return !writes_no_more && state_.landed(static_cast<std::size_t>(peer)) < count;
}

}  // namespace hier
