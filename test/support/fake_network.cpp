// SPDX-License-Identifier: BSD-3-Clause
#include "fake_network.hpp"

#include <algorithm>
#include <new>

#include "exec/executor.hpp"

namespace hier::test {

const char* to_string(Call call)
{
    switch (call) {
    case Call::begin:
        return "begin";
    case Call::announce:
        return "announce";
    case Call::ready:
        return "ready";
    case Call::put:
        return "put";
    case Call::copy:
        return "copy";
    case Call::drain:
        return "drain";
    case Call::progress:
        return "progress";
    }
    return "?";
}

std::optional<Sabotage::How> FakeNetwork::strikes(int rank, Level level, Call call)
{
    if (!sabotage_ || sabotage_->rank != rank || sabotage_->level != level ||
        sabotage_->call != call || calls_++ != sabotage_->nth) {
        return std::nullopt;
    }
    struck_ = true;
    return sabotage_->how;
}

void FakeTransport::blame(const char* rule) const
{
    network_.blame("rank " + std::to_string(rank_) + ", " +
                   (level_ == Level::rail ? "rail: " : "node: ") + rule);
}

// True: refuse it. A failure that comes later is kept for start().
bool FakeTransport::strikes(Call call)
{
    const auto how = network_.strikes(rank_, level_, call);
    fails_later_ = how == Sabotage::How::fails_later;
    return how == Sabotage::How::refused;
}

Status FakeTransport::begin(const Binding& binding)
{
    if (bound_) blame("begin without an end before");
    const bool may_be_same = !has_spoken_;  // the call begins anew
    if (binding.sequence < binding_.sequence + (may_be_same ? 0 : 1))
        blame("a sequence number did not grow");
    bound_ = true;
    has_spoken_ = false;
    binding_ = binding;
    group_.places[me_] = FakeGroup::Place::here;
    if (strikes(Call::begin)) {
        if (rank_ % 2 == 1) throw std::bad_alloc();
        return Status::transport_error;
    }
    return group_.failure == Status::ok ? Status::ok : Status::peer_failed;
}

void FakeTransport::end()
{
    if (!bound_) blame("end without begin");
    if (!flights_.empty()) blame("end with transfers in flight");
    const bool gave_up =
        raised_ && std::chrono::steady_clock::now() - raised_at_ >= Executor::Limits{}.drain;
    group_.places[me_] = gave_up ? FakeGroup::Place::gave_up : FakeGroup::Place::gone;
    for (const Lane& lane : group_.lanes[me_]) {
        if (raised_ && !gave_up && !lane.announced.is_bounce && !lane.is_empty())
            blame("it ends while bytes are on their way to it");
    }
    bound_ = false;
}

Status FakeTransport::announce(int peer)
{
    if (!bound_) blame("announce outside of begin and end");
    has_spoken_ = true;
    if (raised_) blame("announce after a failure");
    if (strikes(Call::announce)) return Status::transport_error;
    auto& from = group_.lanes[me_];
    for (std::size_t i = 0; i < from.size(); i++) {
        if (from[i].broken) continue;
        if (peer == Op::every_peer || peer == static_cast<int>(i))
            from[i].announced = {binding_.sequence, target_for(i), binding_.total,
                                 level_ == Level::rail && has_bounce()};
    }
    return Status::ok;
}

Region FakeTransport::target_for(std::size_t peer) const
{
    if (level_ == Level::node) return binding_.receive;
    Region into = binding_.rail_target();
    into.base += binding_.place_of(peer);
    into.length -= binding_.place_of(peer);
    return into;
}

Status FakeTransport::enter(int peer)
{
    if (!bound_) blame("enter outside of begin and end");
    has_spoken_ = true;
    if (!is_publish()) blame("enter in a call in which ranks announce");
    auto& from = group_.lanes[me_];
    for (std::size_t i = 0; i < from.size(); i++) {
        if (peer == Op::every_peer || peer == static_cast<int>(i))
            from[i].entered = binding_.sequence;
    }
    return Status::ok;
}

Status FakeTransport::entered(int peer)
{
    if (!bound_) blame("entered outside of begin and end");
    if (!is_publish()) blame("entered in a call in which ranks announce");
    if (strikes(Call::ready)) return Status::mismatch;
    const Lane& from = group_.lanes[me_][static_cast<std::size_t>(peer)];
    if (arrived(peer) > 0) return from.differs ? Status::mismatch : Status::ok;
    return to(peer).entered < binding_.sequence ? Status::in_progress : Status::ok;
}

Status FakeTransport::announced(int peer)
{
    if (!bound_) blame("announced outside of begin and end");
    if (strikes(Call::ready)) return Status::mismatch;
    const auto& announced = to(peer).announced;
    if (announced.sequence < binding_.sequence) return Status::in_progress;
    return announced.total == binding_.total ? Status::ok : Status::mismatch;
}

std::vector<FakeTransport::Lane*> FakeTransport::lanes_to(int peer)
{
    if (peer != Op::every_peer) return {&to(peer)};
    std::vector<Lane*> lanes;
    for (std::size_t i = 0; i < group_.lanes.size(); i++)
        if (i != me_) lanes.push_back(&group_.lanes[i][me_]);
    return lanes;
}

void FakeTransport::check_put(const Transfer& transfer)
{
    if (static_cast<std::size_t>(transfer.peer) == me_) blame("a put to oneself");
    const bool is_bounce = transfer.from == Place::bounce;
    if (level_ == Level::node && is_bounce) blame("a put from the bounce buffer");
    if (level_ == Level::rail && is_bounce != has_bounce())
        blame("a put of what the network does not reach");
    if (is_publish() != (transfer.peer == Op::every_peer)) blame("a put to the wrong peers");
    for (const Lane* lane : lanes_to(transfer.peer)) {
        if (!is_publish() && lane->announced.sequence != binding_.sequence)
            blame("a put to a rank that is not ready");
    }
}

Status FakeTransport::put(const Transfer& transfer)
{
    check_put(transfer);
    has_spoken_ = true;
    const auto in_flight = std::count_if(flights_.begin(), flights_.end(),
                                         [](const Flight& f) { return f.call == Call::put; });
    if (level_ == Level::rail && static_cast<std::size_t>(in_flight) >= network_.depth())
        blame("more puts in flight than allowed");
    const auto how = network_.strikes(rank_, level_, Call::put);
    if (how == Sabotage::How::refused) return Status::transport_error;
    if (how == Sabotage::How::connection_broken) break_connection(transfer.peer);
    // After a failed put, the puts behind it on the rail have lost their order.
    const bool is_failure = how == Sabotage::How::fails_later;
    std::vector<std::size_t> after;
    for (Lane* lane : lanes_to(transfer.peer)) {
        lane->lost = lane->lost || how == Sabotage::How::connection_lost ||
                     (is_failure && level_ == Level::rail);
        after.push_back(lane->sent);
    }
    Flight flight{transfer, Call::put, is_failure, std::move(after)};
    flight.streams = how == Sabotage::How::streams;
    if (flight.streams || how == Sabotage::How::stands_still)
        flight.ends = std::chrono::steady_clock::now() + network_.lasts();
    return start(flight);
}

// Parcels on the road are lost, too.
void FakeTransport::break_connection(int peer)
{
    for (Lane* lane : {&to(peer), &group_.lanes[me_][static_cast<std::size_t>(peer)]}) {
        lane->broken = lane->lost = true;
        lane->road.clear();
    }
}

Status FakeTransport::copy(const Transfer& transfer)
{
    if (level_ != Level::node) blame("a copy on the rail");
    if (transfer.from == transfer.to) blame("a copy from a buffer to itself");
    if (transfer.to == Place::send) blame("a copy to the send buffer");
    if ((transfer.from == Place::bounce || transfer.to == Place::bounce) && !has_bounce())
        blame("a copy from or to a bounce buffer that is not there");
    if (strikes(Call::copy)) return Status::transport_error;
    return start({transfer, Call::copy, fails_later_, {}});
}

Status FakeTransport::drain(int peer, std::uint32_t op)
{
    if (strikes(Call::drain)) return Status::transport_error;
    const bool is_busy = std::any_of(flights_.begin(), flights_.end(), [&](const Flight& f) {
        return f.call == Call::put && f.transfer.peer == peer;
    });
    if (is_busy) blame("a drain before its puts are done");
    Transfer transfer{};
    transfer.peer = peer;
    transfer.op = op;
    return start({transfer, Call::drain, fails_later_, {}});
}

Status FakeTransport::progress(Completions& completions)
{
    passes++;
    if (!bound_) blame("progress outside of begin and end");
    if (strikes(Call::progress)) return Status::transport_error;
    if (!network_.chance(network_.weather().idle)) {
        land();
        move_road();
        stream(completions);
        fly(completions);
    }
    return group_.failure != Status::ok && !raised_ ? Status::peer_failed : Status::ok;
}

void FakeTransport::tell(std::uint32_t heartbeat)
{
    group_.heartbeats[me_] = Signal::encode(binding_.sequence, heartbeat);
}

std::uint32_t FakeTransport::heard()
{
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < group_.heartbeats.size(); i++) {
        if (i != me_)
            highest = std::max(highest, Signal::count(group_.heartbeats[i], binding_.sequence));
    }
    return highest;
}

}  // namespace hier::test
