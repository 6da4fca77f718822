// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_lane.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"

namespace hier {

UcxLane::UcxLane(std::shared_ptr<UcxWorker> worker, RailBoard board, std::vector<bool> is_partner,
                 int depth)
    : worker_(std::move(worker)), board_(std::move(board)), is_partner_(std::move(is_partner)),
      peers_(is_partner_.size())
{
    // Puts, and for each peer an announcement, a drain, a failure and two words that it was the last.
    const std::size_t most = static_cast<std::size_t>(depth) + 5 * peers_.size();
    flights_.reserve(most);
    free_flights_.reserve(most);
    done_.reserve(most);
    reported_.reserve(most);  // the two change places
    const std::lock_guard lock(worker_->mutex());
    sink_ = worker_->add_sink(*this);
}

// What is in flight now was given up: UCX may still report it when we are gone.
UcxLane::~UcxLane()
{
    const std::lock_guard lock(worker_->mutex());
    worker_->remove_sink(sink_);
    if (in_flight_ > 0) abandon_flights();
    peers_.clear();
    memory_.reset();
    source_.reset();
    const RailBoard board = std::move(board_);  // goes under the lock
    direct_.reset();
}

void UcxLane::abandon_flights()
{
    for (auto& flight : flights_) {
        flight->rail = nullptr;
        (void)flight.release();
    }
}

bool UcxLane::leave()
{
    if (!is_known_) return true;
    const std::lock_guard lock(worker_->mutex());
    if (UcxWorker::is_quiet()) return false;  // goes with the worker
    const bool in_order = worker_->signal_order() == SignalOrder::by_lane;
    if (leaving_ == Leaving::no) leaving_ = Leaving::flushing;
    // Who had no memory for a flight goes on with it when he is asked again.
    for (; !in_order && flushed_peers_ < peers_.size(); flushed_peers_++) {
        if (peers_[flushed_peers_].endpoint == nullptr) continue;
        Flight& flight = take_flight(static_cast<int>(flushed_peers_), no_op);
        if (post_flush(flight)) release(flight);
    }
    if (leaving_ == Leaving::flushing && (in_order || awaited() == 0)) {
        for (; left_peers_ < peers_.size(); left_peers_++) {
            if (peers_[left_peers_].endpoint == nullptr) continue;
            const auto peer = static_cast<int>(left_peers_);
            if (in_order) {
                (void)send_message(peer, no_op, {.sequence = MessageHead::goodbye}, nullptr, 0);
            } else {
                (void)send_word(peer, no_op, offsetof(RailSlot, goodbye), 1);
            }
        }
        leaving_ = Leaving::gone;
    }
    bool all_gone = leaving_ == Leaving::gone && awaited() == 0;
    for (std::size_t i = 0; all_gone && i < peers_.size(); i++) {
        all_gone = !is_partner_[i] || RailBoard::read(board_.slot(i).goodbye) != 0 ||
                   worker_->is_broken(peers_[i].endpoint);
    }
    return all_gone;
}

bool UcxLane::idle()
{
    const std::lock_guard lock(worker_->mutex());
    return awaited() == 0;
}

Status UcxLane::begin(const Binding& binding)
{
    const std::lock_guard lock(worker_->mutex());
    // A failure that has come is seen before anything is put into the buffer of who raised it.
    constexpr int passes_on_entry = 4096;
    if (!binding.eager) progress_worker(passes_on_entry);
    binding_ = binding;
    is_bound_ = true;
    take_early();
    if (has_failed()) return Status::peer_failed;
    if (binding.eager || failed(own_failure_)) return own_failure_;
    const Region& into = binding.rail_target();
    const bool has_bounce = binding.bounce.base != nullptr;
    ucs_status_t status = UCS_OK;
    std::vector<std::byte>& key = packed_key_;
    if (has_bounce) {
        const QuietUcx quiet;
        status = memory_.map(worker_->context(), into.base, into.length, UCS_MEMORY_TYPE_HOST);
        if (status == UCS_OK) status = memory_.pack_key(key);
    }
    needs_flush_ = !has_bounce && into.memory.kind == MemoryKind::device &&
                   direct_->flush_kind() != gpu::RdmaFlush::none;
    if (needs_flush_) direct_->flush().begin();
    if (status == UCS_OK && key.size() > Announcement::max_key) status = UCS_ERR_EXCEEDS_LIMIT;
    if (status != UCS_OK) {
        log(HIER_LOG_ERROR, "UCX cannot register the receive buffer (%zu bytes): %s", into.length,
            ucs_status_string(status));
        return Status::transport_error;
    }
    const auto address = reinterpret_cast<std::uint64_t>(into.base);
    Announcement& a = announcement_;
    const bool is_known = a.version > 0 && a.address == address && a.length == into.length &&
                          announced_id_ == into.memory.id && a.key_bytes == key.size() &&
                          std::memcmp(a.key.data(), key.data(), key.size()) == 0;
    if (is_known) return Status::ok;
    a.address = address;
    a.length = into.length;
    a.key_bytes = key.size();
    std::memcpy(a.key.data(), key.data(), key.size());
    a.version++;
    announced_id_ = into.memory.id;
    return Status::ok;
}

void UcxLane::end()
{
    const std::lock_guard lock(worker_->mutex());
    // After a failure a peer may still be writing, and would break the connection of the processes if
    // what it writes into were registered no more.
    if (!raised_) {
        memory_.reset();
        source_.reset();
    }
    is_bound_ = false;
    if (direct_) direct_->end();
}

Status UcxLane::announce(int peer_index)
{
    const std::lock_guard lock(worker_->mutex());
    Peer& peer = peers_[static_cast<std::size_t>(peer_index)];
    Flight& flight = take_flight(peer_index, no_op);
    flight.signal_to = peer.board + offsetof(RailSlot, ready);
    flight.signal = binding_.sequence;
    peer.let_in = binding_.sequence;
    const bool is_news = peer.told != announcement_.version;
    peer.told = announcement_.version;
    const std::size_t bytes = is_news ? offsetof(Announcement, key) + announcement_.key_bytes : 0;
    const Status status = launch(flight, &announcement_, bytes,
                                 peer.board + offsetof(RailSlot, announcement), peer.board_key);
    return failed(status) ? status : Status::ok;
}

// An empty message: the peer notes whose call it belongs to.
Status UcxLane::enter(int peer)
{
    const std::lock_guard lock(worker_->mutex());
    const Status status = send_message(peer, no_op, {}, nullptr, 0);
    return failed(status) ? status : Status::ok;
}

Status UcxLane::entered(int peer_index)
{
    Peer& peer = peers_[static_cast<std::size_t>(peer_index)];
    RailSlot& slot = board_.slot(static_cast<std::size_t>(peer_index));
    const bool is_in_call = RailBoard::read(peer.called) >= binding_.sequence ||
                            Signal::sequence(RailBoard::read(slot.heartbeat)) >= binding_.sequence;
    return is_in_call ? Status::ok : Status::in_progress;
}

Status UcxLane::announced(int peer_index)
{
    Peer& peer = peers_[static_cast<std::size_t>(peer_index)];
    RailSlot& slot = board_.slot(static_cast<std::size_t>(peer_index));
    if (read(slot.ready, peer.seen_ready) < binding_.sequence) return Status::in_progress;
    const Announcement& theirs = slot.announcement;
    if (theirs.length != binding_.receive.length) {
        log(HIER_LOG_ERROR,
            "ranks disagree on the size of a call: %zu bytes in all here, %zu at rail rank "
            "%d",
            binding_.receive.length, static_cast<std::size_t>(theirs.length), peer_index);
        return Status::mismatch;
    }
    if (peer.known == theirs.version) return Status::ok;
    const std::lock_guard lock(worker_->mutex());
    const ucs_status_t status = peer.buffer_key.unpack(peer.endpoint, theirs.key.data());
    if (status != UCS_OK) {
        log(HIER_LOG_ERROR, "UCX cannot use the key of rail rank %d's buffer: %s", peer_index,
            ucs_status_string(status));
        return Status::transport_error;
    }
    peer.known = theirs.version;
    return Status::ok;
}

Status UcxLane::put(const Transfer& transfer)
{
    const std::lock_guard lock(worker_->mutex());
    Peer& peer = peers_[static_cast<std::size_t>(transfer.peer)];
    const std::byte* from = binding_.at(transfer.from, transfer.slice.source);
    if (binding_.eager) {
        return send_message(transfer.peer, transfer.op,
                            {.offset = transfer.slice.target, .count = transfer.count}, from,
                            transfer.slice.length);
    }
    Flight& flight = take_flight(transfer.peer, transfer.op);
    flight.signal_to = peer.board + offsetof(RailSlot, arrivals);
    flight.signal = peer.last_signal = Signal::encode(binding_.sequence, transfer.count);
    flight.is_on_device = binding_.region(transfer.from).memory.kind == MemoryKind::device;
    const std::uint64_t to =
        board_.slot(static_cast<std::size_t>(transfer.peer)).announcement.address +
        transfer.slice.target;
    return launch(flight, from, transfer.slice.length, to, peer.buffer_key);
}

// A UCX flush is no way to end a call: over TCP it is a message of its own, which the peer answers
// only while it progresses its worker, and the peer leaves as soon as it has its data. But TCP
// takes something only when what went before has gone to the kernel: an empty message, and what may
// still be stuck when this one is taken is of no use to anybody. (No put: UCX's new protocols, seen
// with 1.18, complete each of them when its target has answered.) A NIC needs no help at all. On lanes that we do not
// know, a message may go by another one than puts: the last signal once more.
Status UcxLane::drain(int peer, std::uint32_t op)
{
    if (worker_->signal_order() == SignalOrder::by_fence) return Status::ok;
    const std::lock_guard lock(worker_->mutex());
    if (binding_.eager) return drain_messages(peer, op);
    if (worker_->signal_order() == SignalOrder::by_lane)
        return send_message(peer, op, {}, nullptr, 0);
    return send_word(peer, op, offsetof(RailSlot, arrivals),
                     peers_[static_cast<std::size_t>(peer)].last_signal);
}

// Over TCP it may be another thread that stores words, behind their data, by plain copies: whoever
// sees a new one sees what came before it when he has had the lock.
std::uint64_t UcxLane::read(std::uint64_t& word, std::uint64_t& seen)
{
    const std::uint64_t now = RailBoard::read(word);
    if (now != seen) {
        const std::lock_guard lock(worker_->mutex());
        seen = now;
    }
    return now;
}

std::uint32_t UcxLane::landed(std::size_t peer)
{
    return Signal::count(read(board_.slot(peer).arrivals, peers_[peer].seen_arrivals),
                         binding_.sequence);
}

std::uint32_t UcxLane::arrived(int peer)
{
    const auto i = static_cast<std::size_t>(peer);
    if (binding_.eager) return Signal::count(RailBoard::read(peers_[i].got), binding_.sequence);
    return needs_flush_ ? flushed(i) : landed(i);
}

bool UcxLane::is_lost(int peer)
{
    if (!worker_->has_broken()) return false;
    const std::lock_guard lock(worker_->mutex());
    return worker_->is_broken(peers_[static_cast<std::size_t>(peer)].endpoint);
}

Status UcxLane::progress(Completions& completions)
{
    Status failure = Status::ok;
    {
        const std::lock_guard lock(worker_->mutex());
        constexpr int max_passes = 16;  // then other teams get their share
        progress_worker(max_passes);
        std::swap(done_, reported_);
        failure = own_failure_;
    }
    struct Clear {  // whatever complete() throws
        ~Clear() { all.clear(); }
        std::vector<Done>& all;
    } const clear{reported_};
    for (const Done& done : reported_) completions.complete(done.op, done.status);
    if (raised_) return Status::ok;
    if (failed(failure)) return failure;
    return has_failed() ? Status::peer_failed : Status::ok;
}

void UcxLane::progress_worker(int most)
{
    for (int i = 0; i < most && ucp_worker_progress(worker_->handle()) != 0; i++) {
    }
}

void UcxLane::tell(std::uint32_t heartbeat)
{
    const std::lock_guard lock(worker_->mutex());
    for (std::size_t i = 0; i < peers_.size(); i++) {
        if (peers_[i].endpoint == nullptr) continue;
        (void)send_word(static_cast<int>(i), no_op, offsetof(RailSlot, heartbeat),
                        Signal::encode(binding_.sequence, heartbeat));
    }
}

std::uint32_t UcxLane::heard()
{
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < peers_.size(); i++) {
        highest = std::max(
            highest, Signal::count(RailBoard::read(board_.slot(i).heartbeat), binding_.sequence));
    }
    return highest;
}

}  // namespace hier
