#include "fake_network.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "executor.hpp"

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
    if (binding.sequence <= binding_.sequence) blame("a sequence number did not grow");
    bound_ = true;
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
        if (raised_ && !gave_up && !lane.announced.stays && !lane.is_empty())
            blame("it ends while bytes are on their way to it");
    }
    bound_ = false;
}

Status FakeTransport::announce(int peer)
{
    if (!bound_) blame("announce outside of begin and end");
    if (raised_) blame("announce after a failure");
    if (strikes(Call::announce)) return Status::transport_error;
    auto& from = group_.lanes[me_];
    for (std::size_t i = 0; i < from.size(); i++) {
        if (from[i].broken) continue;
        if (peer == Op::every_peer || peer == static_cast<int>(i))
            from[i].announced = {binding_.sequence,
                                 level_ == Level::rail ? binding_.rail_target() : binding_.receive,
                                 level_ == Level::rail && has_landing()};
    }
    return Status::ok;
}

Status FakeTransport::ready(int peer)
{
    if (!bound_) blame("ready outside of begin and end");
    if (strikes(Call::ready)) return Status::mismatch;
    if (is_broadcast()) {
        const Lane& from = group_.lanes[me_][static_cast<std::size_t>(peer)];
        if (arrived(peer) == 0) return Status::in_progress;
        return from.differs ? Status::mismatch : Status::ok;
    }
    const auto& announced = to(peer).announced;
    if (announced.sequence < binding_.sequence) return Status::in_progress;
    return announced.into.length == binding_.receive.length ? Status::ok : Status::mismatch;
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
    const bool is_landing = transfer.from == Place::landing;
    if (level_ == Level::node && is_landing) blame("a put from the landing buffer");
    if (level_ == Level::rail && is_landing != has_landing())
        blame("a put of what the network does not reach");
    if (is_broadcast() != (transfer.peer == Op::every_peer)) blame("a put to the wrong peers");
    for (const Lane* lane : lanes_to(transfer.peer)) {
        if (!is_broadcast() && lane->announced.sequence != binding_.sequence)
            blame("a put to a rank that is not ready");
    }
}

Status FakeTransport::put(const Transfer& transfer)
{
    check_put(transfer);
    const auto in_flight = std::count_if(flights_.begin(), flights_.end(),
                                         [](const Flight& f) { return f.call == Call::put; });
    if (level_ == Level::rail && static_cast<std::size_t>(in_flight) >= network_.depth())
        blame("more puts in flight than allowed");
    const auto how = network_.strikes(rank_, level_, Call::put);
    if (how == Sabotage::How::refused) return Status::transport_error;
    if (how == Sabotage::How::connection_broken) break_connection(transfer.peer);
    // What follows on a rail whose put fails has lost its order.
    const bool is_failure = how == Sabotage::How::fails_later;
    std::vector<std::size_t> after;
    for (Lane* lane : lanes_to(transfer.peer)) {
        lane->lost = lane->lost || how == Sabotage::How::connection_lost ||
                     (is_failure && level_ == Level::rail);
        after.push_back(lane->sent);
    }
    return start({transfer, Call::put, is_failure, std::move(after)});
}

// With what is on the road.
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
    if ((transfer.from == Place::landing || transfer.to == Place::landing) && !has_landing())
        blame("a copy from or to a landing buffer that is not there");
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

Status FakeTransport::start(const Flight& flight)
{
    if (!bound_) blame("a transfer outside of begin and end");
    if (raised_) blame("a transfer started after a failure");
    const Slice& slice = flight.transfer.slice;
    if (slice.offset + slice.length > binding_.receive.length)
        blame("a transfer beyond the end of the buffer");
    const auto& w = network_.weather();
    if (flight.fails || !flights_.empty() || !network_.chance(w.immediate)) {
        flights_.push_back(flight);
        return Status::in_progress;
    }
    perform(flight);
    return Status::ok;
}

const std::byte* FakeTransport::source(const Transfer& transfer) const
{
    return binding_.at(transfer.from, transfer.slice.offset);
}

// The moment at which the source is read.
void FakeTransport::perform(const Flight& flight)
{
    const Transfer& transfer = flight.transfer;
    const Slice slice = transfer.slice;
    switch (flight.call) {
    case Call::copy:
        std::memmove(binding_.at(transfer.to, slice.offset), source(transfer), slice.length);
        break;
    case Call::drain: {
        Lane& lane = to(transfer.peer);
        std::move(lane.road.begin(), lane.road.end(), std::back_inserter(lane.arriving));
        lane.road.clear();
        break;
    }
    case Call::put:
        if (stopped_) blame("a put after the last");
        send(flight);
        break;
    case Call::begin:
    case Call::announce:
    case Call::ready:
    case Call::progress:
        blame("not a transfer");
        break;
    }
}

void FakeTransport::send(const Flight& flight)
{
    const Transfer& transfer = flight.transfer;
    const std::byte* from = source(transfer);
    std::size_t number = 0;
    for (Lane* lane : lanes_to(transfer.peer)) {
        const std::size_t after = flight.after[number++];
        if (lane->lost) continue;
        const bool is_gone =
            !is_broadcast() &&
            group_.places[static_cast<std::size_t>(transfer.peer)] == FakeGroup::Place::gone;
        if (is_gone && !lane->announced.stays) blame("a put to a rank that has left its call");
        auto& queue = level_ == Level::rail ? lane->road : lane->arriving;
        queue.push_back({{from, from + transfer.slice.length},
                         transfer.slice.offset,
                         binding_.sequence,
                         transfer.count,
                         binding_.receive.length,
                         lane->sent++,
                         after,
                         is_broadcast()});
    }
}

std::uint32_t FakeTransport::arrived(int peer)
{
    return Signal::count(group_.lanes[me_][static_cast<std::size_t>(peer)].signal,
                         binding_.sequence);
}

// Puts of one rail channel are done in their order, all else in any.
bool FakeTransport::may_go(std::size_t flight) const
{
    const Flight& f = flights_[flight];
    return level_ == Level::node ||
           std::none_of(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(flight),
                        [&](const Flight& o) { return o.transfer.peer == f.transfer.peer; });
}

void FakeTransport::fly(Completions& completions)
{
    for (std::size_t turns = network_.below(4); turns > 0 && !flights_.empty(); turns--) {
        const std::size_t i = network_.below(flights_.size());
        if (!may_go(i)) continue;
        const Flight flight = flights_[i];
        flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!flight.fails) perform(flight);
        completions.complete(flight.transfer.op,
                             flight.fails ? Status::transport_error : Status::ok);
    }
}

void FakeTransport::move_road()
{
    for (auto& receiver : group_.lanes) {
        Lane& lane = receiver[me_];
        for (std::size_t n = network_.below(3); n > 0 && !lane.road.empty(); n--) {
            lane.arriving.push_back(std::move(lane.road.front()));
            lane.road.pop_front();
        }
    }
}

void FakeTransport::land(Lane& lane, std::size_t parcel)
{
    const Parcel p = std::move(lane.arriving[parcel]);
    lane.arriving.erase(lane.arriving.begin() + static_cast<std::ptrdiff_t>(parcel));
    if (!bound_ || p.sequence != binding_.sequence)
        return blame("bytes came after the end of their call");
    lane.differs = is_broadcast() && p.total != binding_.receive.length;
    std::byte* const into = is_broadcast() ? binding_.receive.base : lane.announced.into.base;
    if (!lane.differs) std::memcpy(into + p.offset, p.bytes.data(), p.bytes.size());
    const std::uint32_t before = Signal::count(lane.signal, p.sequence);
    if (level_ == Level::rail && p.count != before + 1) blame("a rail put out of order");
    lane.signal = Signal::encode(p.sequence, before + 1);
}

// For a call in which this rank is not yet.
bool FakeTransport::is_early(const Lane& lane, std::size_t parcel) const
{
    return lane.arriving[parcel].is_kept && lane.arriving[parcel].sequence > binding_.sequence;
}

// On the node level in any order, but for what was done when another put began: that comes first.
bool FakeTransport::may_land(const Lane& lane, std::size_t parcel)
{
    const std::size_t after = lane.arriving[parcel].after;
    return std::none_of(lane.arriving.begin(), lane.arriving.end(),
                        [&](const auto& other) { return other.number < after; });
}

void FakeTransport::land()
{
    for (Lane& lane : group_.lanes[me_]) {
        for (std::size_t n = network_.below(3); n > 0 && !lane.arriving.empty(); n--) {
            const std::size_t any = network_.below(lane.arriving.size());
            if (level_ == Level::rail) {
                land(lane, 0);
            } else if (may_land(lane, any) && !is_early(lane, any)) {
                land(lane, any);
            }
        }
    }
}

Status FakeTransport::progress(Completions& completions)
{
    if (!bound_) blame("progress outside of begin and end");
    if (strikes(Call::progress)) return Status::transport_error;
    if (!network_.chance(network_.weather().idle)) {
        land();
        move_road();
        fly(completions);
    }
    return group_.failure != Status::ok && !raised_ ? Status::peer_failed : Status::ok;
}

void FakeTransport::tell(std::uint32_t beat)
{
    group_.beats[me_] = Signal::encode(binding_.sequence, beat);
}

std::uint32_t FakeTransport::heard()
{
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < group_.beats.size(); i++) {
        if (i != me_)
            highest = std::max(highest, Signal::count(group_.beats[i], binding_.sequence));
    }
    return highest;
}

}  // namespace hier::test
