// SPDX-License-Identifier: BSD-3-Clause
// The transfers of the fake network: copies and puts until they are done, parcels until they land.
#include "fake_network.hpp"

#include <algorithm>
#include <cstring>

namespace hier::test {

using Clock = std::chrono::steady_clock;

Status FakeTransport::start(const Flight& flight)
{
    if (!bound_) blame("a transfer outside of begin and end");
    if (raised_) blame("a transfer started after a failure");
    check_target(flight);
    const auto& w = network_.weather();
    const bool takes_long = flight.ends > Clock::time_point{};
    if (takes_long || flight.fails || !flights_.empty() || !network_.chance(w.immediate)) {
        flights_.push_back(flight);
        return Status::in_progress;
    }
    perform(flight);
    return Status::ok;
}

// Where a put goes, in the buffer that the lane's receiver has announced.
Extent FakeTransport::target_of(const Transfer& transfer, const Lane& lane) const
{
    const Slice& slice = transfer.slice;
    return {lane.announced.is_bounce ? transfer.packed : slice.target, slice.length};
}

void FakeTransport::check_target(const Flight& flight)
{
    const Transfer& transfer = flight.transfer;
    if (flight.call == Call::copy &&
        !fits(transfer.slice.target, transfer.slice.length, binding_.region(transfer.to).length))
        blame("a copy beyond the end of the buffer");
    if (flight.call != Call::put) return;
    for (const Lane* lane : lanes_to(transfer.peer)) {
        const Extent to = target_of(transfer, *lane);
        if (!fits(to.offset, to.length,
                  is_publish() ? binding_.receive.length : lane->announced.into.length))
            blame("a put beyond the end of the buffer");
    }
}

const std::byte* FakeTransport::source(const Transfer& transfer) const
{
    return binding_.at(transfer.from, transfer.slice.source);
}

// The moment at which the source is read.
void FakeTransport::perform(const Flight& flight)
{
    const Transfer& transfer = flight.transfer;
    const Slice slice = transfer.slice;
    switch (flight.call) {
    case Call::copy:
        std::memmove(binding_.at(transfer.to, slice.target), source(transfer), slice.length);
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
            !is_publish() &&
            group_.places[static_cast<std::size_t>(transfer.peer)] == FakeGroup::Place::gone;
        if (is_gone && !lane->announced.is_bounce) blame("a put to a rank that has left its call");
        auto& queue = level_ == Level::rail ? lane->road : lane->arriving;
        queue.push_back({{from, from + transfer.slice.length},
                         target_of(transfer, *lane).offset,
                         binding_.sequence,
                         transfer.count,
                         binding_.total,
                         lane->sent++,
                         after,
                         is_publish()});
    }
}

std::uint32_t FakeTransport::arrived(int peer)
{
    return Signal::count(group_.lanes[me_][static_cast<std::size_t>(peer)].signal,
                         binding_.sequence);
}

// The puts of one pair on a rail are done in their order, everything else in any order.
bool FakeTransport::may_go(std::size_t flight) const
{
    const Flight& f = flights_[flight];
    if (f.ends > Clock::time_point{} && f.ends > Clock::now()) return false;
    return level_ == Level::node ||
           std::none_of(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(flight),
                        [&](const Flight& o) { return o.transfer.peer == f.transfer.peer; });
}

void FakeTransport::stream(Completions& completions) const
{
    for (const Flight& f : flights_) {
        if (f.streams && f.ends > Clock::now()) completions.moved_bytes();
    }
}

void FakeTransport::fly(Completions& completions)
{
    for (std::size_t steps = network_.below(4); steps > 0 && !flights_.empty(); steps--) {
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
    lane.differs = is_publish() && p.total != binding_.total;
    std::byte* const into = is_publish() ? binding_.receive.base : lane.announced.into.base;
    if (!lane.differs) std::memcpy(into + p.offset, p.bytes.data(), p.bytes.size());
    const std::uint32_t before = Signal::count(lane.signal, p.sequence);
    if (level_ == Level::rail && p.count != before + 1) blame("a rail put out of order");
    lane.signal = Signal::encode(p.sequence, before + 1);
}

// The parcel belongs to a call that this rank has not entered.
bool FakeTransport::is_early(const Lane& lane, std::size_t parcel) const
{
    return lane.arriving[parcel].is_kept && lane.arriving[parcel].sequence > binding_.sequence;
}

// On the node level parcels land in any order, but a put that was done before another began lands
// first.
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

}  // namespace hier::test
