// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_transport.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/disagreement.hpp"
#include "base/log.hpp"

namespace hier {

NodeTransport::NodeTransport(const Group& group, const NodeRanks& ranks, const NodeNeeds& needs,
                             std::unique_ptr<NodeSegment> segment)
    : segment_(std::move(segment)), context_{.segment = segment_.get()},
      paths_(make_node_paths(context_, group, ranks, needs))
{
    for (const CmaTarget& process : ranks.processes) pids_.push_back(process.pid);
    if (segment_) {
        context_.offers.resize(static_cast<std::size_t>(group.size()));
        offered_in_.resize(context_.offers.size());
    }
    if (paths_.device_publish) {  // the engines choose the device of the call
        published_ = {paths_.engines.get(), paths_.device_publish.get()};
    } else if (paths_.publish) {
        published_.push_back(paths_.publish.get());
    }
    if (paths_.engines) others_.push_back(paths_.engines.get());
    if (paths_.cma) others_.push_back(paths_.cma.get());
    if (paths_.cells) others_.push_back(paths_.cells.get());
    if (paths_.device_cells) others_.push_back(paths_.device_cells.get());
    if (paths_.engines && paths_.publish) {
        host_published_ = {paths_.publish.get(), paths_.cells.get()};
        mixed_ = others_;
        mixed_.push_back(paths_.publish.get());
    }
    active_ = others_;
}

// Every path begins, even if another one fails, because end() ends them all.
Status NodeTransport::begin(const Binding& binding)
{
    context_.bind(binding);
    active_ = is_published() ? (is_mixed() ? host_published_ : published_)
                             : (is_mixed() ? mixed_ : others_);
    if (!is_published()) paths_.choice.begin(binding.total);
    Status status = context_.has_failed() ? Status::peer_failed : Status::ok;
    for (NodePath* path : active_) {
        const Status begun = path->begin();
        if (!failed(status)) status = begun;
    }
    const bool may_announce = !is_published() || has_device_publish();
    if (paths_.offer && may_announce) paths_.offer->begin();
    return status;
}

Status NodeTransport::announce(int)
{
    NodeSlot& slot = segment_->slot(segment_->rank());
    NodeOffer& offer = offer_of(segment_->rank());
    if (paths_.offer) paths_.offer->write(offer);
    const Binding& binding = context_.binding;
    offer.address = reinterpret_cast<std::uint64_t>(binding.receive.base);
    offer.length = binding.receive.length;
    offer.before = binding.receive.before;
    offer.after = binding.receive.after;
    offer.shape = binding.shape();
    offer.is_displaced = binding.displacements.empty() ? 0 : 1;
    // Peers read these only to put to this rank. So none reads those of an earlier call any more.
    std::copy(binding.displacements.begin(), binding.displacements.end(),
              segment_->displacements(segment_->rank()).begin());
    slot.ready.store(binding.sequence, std::memory_order_release);
    enter_call(slot, binding.sequence, binding.shape());
    // With the fence in raise(): either a rank that fails sees that this rank is in the call, or
    // this rank sees the failure before it writes.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Status::ok;
}

Status NodeTransport::enter(int)
{
    NodeSlot& slot = segment_->slot(segment_->rank());
    enter_call(slot, context_.binding.sequence, context_.binding.shape());
    return Status::ok;
}

// A rank that publishes needs no entry word: its first block proves that it is in the call.
Status NodeTransport::entered(int peer)
{
    const Status published = published_by(peer);
    return published == Status::in_progress ? entered_alike(peer) : published;
}

Status NodeTransport::published_by(int peer) const
{
    return paths_.publish ? paths_.publish->entered(peer) : Status::in_progress;
}

// A peer may be a call ahead. What it said of this one is still there, as a block or as an entry word.
// It wrote its block before the next entry word, so one that came meanwhile is seen now.
Status NodeTransport::entered_alike(int peer)
{
    const NodeSlot& slot = segment_->slot(peer);
    const Binding& binding = context_.binding;
    if (slot.entered.load(std::memory_order_acquire) < binding.sequence) return Status::in_progress;
    const Status published = published_by(peer);
    if (published != Status::in_progress) return published;
    const std::uint64_t shape = slot.shapes[binding.sequence % 2];
    return shape == binding.shape() ? Status::ok
                                    : refuse_shape(binding.shape(), shape, "node", peer);
}

Status NodeTransport::announced(int peer)
{
    const NodeSlot& slot = segment_->slot(peer);
    const Binding& binding = context_.binding;
    // A peer that publishes never announces. Nor does one whose blocks are smaller, if it takes this for
    // another call.
    if (slot.ready.load(std::memory_order_acquire) < binding.sequence) {
        Status status = published_by(peer);
        const bool has_published = status == Status::ok;
        if (status == Status::in_progress) status = entered_alike(peer);
        if (status != Status::ok) return status;
        if (!is_mixed()) return has_published ? status : Status::in_progress;
    }
    // Once more, because a peer enters behind its announcement. One that has entered without it publishes. One that is
    // ahead has ended this call, so it wanted nothing of this rank.
    const std::uint64_t sequence = slot.ready.load(std::memory_order_acquire);
    const bool has_announced = sequence == binding.sequence;
    const Status status = has_announced ? take_offer(peer) : Status::ok;
    if (failed(status)) return status;
    if (paths_.buffers && !paths_.choice.is_known(peer)) {
        paths_.choice.know(peer, has_announced ? paths_.buffers->reach(peer) : WritePath::by_cells);
        paths_.engines->expect_one_less();
    }
    return Status::ok;
}

// Reads the peer's words once in a call.
Status NodeTransport::take_offer(int peer)
{
    const Binding& binding = context_.binding;
    if (is_offer_taken(peer)) return Status::ok;
    NodeOffer& offer = context_.offers[static_cast<std::size_t>(peer)];
    offer = offer_of(peer);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
    if (offer.shape != binding.shape())
        return refuse_shape(binding.shape(), offer.shape, "node", peer);
    if (offer.is_displaced != 0 && segment_->displacements(peer).empty()) {
        log(HIER_LOG_ERROR, "node rank %d announces displacements without room for them", peer);
        return Status::transport_error;
    }
    const std::size_t lent = paths_.device_cells ? paths_.device_cells->lent_bytes() : 0;
    if (const char* fault = fault_of(offer, lent); fault != nullptr) {
        log(HIER_LOG_ERROR, "node rank %d announces %s", peer, fault);
        return Status::transport_error;
    }
    offered_in_[static_cast<std::size_t>(peer)] = binding.sequence;
    return Status::ok;
}

const std::byte* NodeTransport::source_of(const Transfer& home) const
{
    const Binding& binding = context_.binding;
    const bool is_receive = home.from == Place::receive;
    return binding.at(home.from,
                      is_receive ? binding.in_receive(home.slice.source) : home.slice.source);
}

Transfer NodeTransport::placed(Transfer transfer, bool is_put) const
{
    const Binding& binding = context_.binding;
    Slice& slice = transfer.slice;
    if (transfer.from == Place::receive) slice.source = binding.in_receive(slice.source);
    if (!is_put && transfer.to == Place::receive) slice.target = binding.in_receive(slice.target);
    if (is_put && is_displaced(transfer.peer))
        slice.target =
            binding.homes.displaced(slice.target, segment_->displacements(transfer.peer));
    return transfer;
}

Status NodeTransport::publish(const Transfer& home)
{
    NodePublish& publish = *paths_.publish;
    if (!publish.lends(home.slice.length)) return publish.put(home.slice, source_of(home));
    Transfer transfer = home;
    if (home.from == Place::receive)
        transfer.slice.source = context_.binding.in_receive(home.slice.source);
    return publish.lend(transfer);
}

Status NodeTransport::put(const Transfer& home)
{
    if (is_published())
        return has_device_publish() ? paths_.device_publish->put(home) : publish(home);
    if (!segment_) return Status::bad_argument;
    if (home.slice.length == 0 && paths_.cells) return empty_put(home);
    const Transfer transfer = placed(home, true);
    const bool is_from_device =
        paths_.engines && is_of_device(context_.binding.region(transfer.from).memory);
    if (is_displaced(transfer.peer) &&
        !fits(transfer.slice.target, transfer.slice.length, context_.offer(transfer.peer).length)) {
        log(HIER_LOG_ERROR, "node rank %d announces a displacement beyond its receive buffer",
            transfer.peer);
        return Status::transport_error;
    }
    const PutPath path = paths_.choice.choose(transfer.peer, transfer.slice.length, is_from_device);
    if (path != PutPath::cells && !is_offer_taken(transfer.peer)) {
        log(HIER_LOG_ERROR, "ranks disagree on a call: node rank %d has ended it without our bytes",
            transfer.peer);
        return Status::mismatch;
    }
    switch (path) {
    case PutPath::open: {
        const auto status = paths_.cma->put_if_reachable(transfer);
        paths_.choice.report(transfer.peer, status.has_value());
        return status ? *status : paths_.cells->put(transfer);
    }
    case PutPath::cma:
        return paths_.cma->put(transfer);
    case PutPath::engines:
        return paths_.engines->put(transfer);
    case PutPath::device_cells:
        return paths_.device_cells->put(transfer);
    case PutPath::unknown:
    case PutPath::cells:
        break;
    }
    return paths_.cells->put(transfer);
}

// It has no place in the peer's buffer, and does not decide about the path of other puts. There are
// cells wherever plans have such puts.
Status NodeTransport::empty_put(Transfer transfer)
{
    transfer.slice.target = 0;
    return paths_.cells->put(transfer);
}

Status NodeTransport::copy(const Transfer& home)
{
    const Binding& binding = context_.binding;
    const Transfer transfer = placed(home, false);
    if (paths_.engines && (is_of_device(binding.region(transfer.from).memory) ||
                           is_of_device(binding.region(transfer.to).memory)))
        return is_published() ? paths_.device_publish->copy(transfer)
                              : paths_.engines->copy(transfer);
    std::memcpy(binding.at(transfer.to, transfer.slice.target), context_.source(transfer),
                transfer.slice.length);
    return Status::ok;
}

Status NodeTransport::exchange(const Binding& binding, const NodeExchange& whole, unsigned looks)
{
    // A start copies no more than this, and no blocks in device memory. A rank that lends its block waits until the peer
    // has copied it, which takes as long as thousands of looks. If the application may compute meanwhile, the rank waits
    // only for a peer that copies at the same time. Where another thread moves the call, or others wait for the starter,
    // the start leaves large blocks alone.
    constexpr std::size_t most = 64 << 10, most_lent = 512 << 10, bytes_per_looks = 4 << 10;
    if (!paths_.publish || context_.has_failed()) return Status::in_progress;
    NodePublish& publish = *paths_.publish;
    const bool is_lent = publish.lends(whole.put.slice.length);
    if (binding.total > (is_lent ? most_lent : most)) return Status::in_progress;
    const bool may_take_long = !binding.in_background || binding.is_moved_by_starter;
    if (is_lent && (publish.was_refused() || !may_take_long)) return Status::in_progress;
    context_.bind(binding);
    if (has_device_publish() && !paths_.device_publish->enter_from_host(whole.put))
        return Status::in_progress;
    if (failed(publish.begin()) || failed(this->publish(whole.put))) return Status::in_progress;
    if (whole.copy) {
        const Slice& own = whole.copy->slice;
        std::memcpy(binding.receive.base + binding.in_receive(own.target), source_of(*whole.copy),
                    own.length);
    }
    const auto to_copy =
        binding.in_background ? 1 : static_cast<unsigned>(binding.total / bytes_per_looks);
    return publish.gather(looks, looks * (1 + to_copy)) ? Status::ok : Status::in_progress;
}

void NodeTransport::submit(Completions& completions)
{
    if (paths_.engines) paths_.engines->submit(completions);
}

std::uint32_t NodeTransport::arrived(int peer)
{
    if (has_device_publish()) return paths_.device_publish->arrived(peer);
    if (is_published() && !is_mixed()) return paths_.publish->arrived(peer);
    std::uint32_t count = 0;
    for (const NodePath* path : active_) count += path->arrived(peer);
    return count;
}

bool NodeTransport::has_to_take(int peer)
{
    return (is_published() && paths_.publish->has_to_take()) ||
           (paths_.cells && paths_.cells->has_to_take(peer));
}

// The ranks of a node have one PID namespace. Another process may have got the number since; then the
// death stays unnoticed.
bool NodeTransport::has_ended(int peer)
{
    return kill(pids_[static_cast<std::size_t>(peer)], 0) != 0 && errno == ESRCH;
}

// Copy engines report first. So peers hear of copies that are done, even after a rank has failed.
Status NodeTransport::progress(Completions& completions)
{
    Status status = paths_.engines ? paths_.engines->progress(completions) : Status::ok;
    if (!failed(status) && context_.has_failed() && !context_.raised) status = Status::peer_failed;
    if (failed(status)) return status;
    if (has_device_publish()) return paths_.device_publish->progress(completions);
    if (is_published() && !is_mixed()) return paths_.publish->progress(completions);
    for (NodePath* path : active_) {
        if (failed(status)) break;
        if (path != paths_.engines.get()) status = path->progress(completions);
    }
    return status;
}

bool NodeTransport::idle()
{
    bool is_idle = true;
    for (NodePath* path : active_) is_idle = path->idle() && is_idle;
    return is_idle;
}

Status NodeTransport::settle() { return paths_.engines ? paths_.engines->settle() : Status::ok; }

void NodeTransport::end()
{
    if (paths_.buffers) paths_.buffers->end();
    for (NodePath* path : active_) path->end();
}

void NodeTransport::tell(std::uint32_t heartbeat)
{
    if (!segment_) return;
    NodeSlot& slot = segment_->slot(segment_->rank());
    slot.heartbeat.store(Signal::encode(context_.binding.sequence, heartbeat),
                         std::memory_order_relaxed);
}

std::uint32_t NodeTransport::heard()
{
    std::uint32_t highest = 0;
    for (int peer = 0; segment_ && peer < segment_->size(); peer++) {
        if (peer == segment_->rank()) continue;
        const std::uint64_t word = segment_->slot(peer).heartbeat.load(std::memory_order_relaxed);
        highest = std::max(highest, Signal::count(word, context_.binding.sequence));
    }
    return highest;
}

void NodeTransport::raise(Status status)
{
    context_.raised = true;
    if (segment_) {
        segment_->failure().store(static_cast<int>(status), std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);  // see announce()
    }
    for (NodePath* path : others_) path->raise();
    if (paths_.device_publish) paths_.device_publish->raise();
}

void NodeTransport::stop()
{
    const bool may_go_on = (paths_.engines && paths_.engines->has_hung()) ||
                           (paths_.cells && paths_.cells->has_hung()) ||
                           (paths_.publish && paths_.publish->has_hung()) ||
                           (paths_.device_cells && paths_.device_cells->has_hung()) ||
                           (paths_.device_publish && paths_.device_publish->has_hung());
    if (segment_ && !may_go_on)
        segment_->slot(segment_->rank()).stopped.store(1, std::memory_order_release);
}

bool NodeTransport::may_write(int peer, std::uint32_t count)
{
    if (!segment_) return false;
    // Through cells no rank writes into another rank's buffer.
    const bool is_open = paths_.offer ? is_direct(offer_of(segment_->rank()).path)
                                      : paths_.cma && !context_.binding.publish;
    const auto is_in = [&](int rank) {
        return segment_->slot(rank).ready.load(std::memory_order_acquire) >=
               context_.binding.sequence;
    };
    // A rank that enters later sees that this rank has failed, and writes nothing.
    return is_open && is_in(segment_->rank()) && is_in(peer) &&
           segment_->slot(peer).stopped.load(std::memory_order_acquire) == 0 &&
           arrived(peer) < count;
}

std::size_t NodeTransport::publish_space() const
{
    if (paths_.max_published == NodePaths::any_size) return NodePaths::any_size;
    if (paths_.engines && !paths_.device_publish) return 0;
    if (!segment_) return NodePaths::any_size;
    return paths_.publish ? paths_.publish->space() : 0;
}

std::size_t NodeTransport::host_publish_space() const
{
    if (!segment_) return NodePaths::any_size;
    return paths_.publish && paths_.engines ? paths_.publish->space() : 0;
}

}  // namespace hier
