// SPDX-License-Identifier: BSD-3-Clause
// The events between ranks.
#include <algorithm>
#include <utility>

#include "machine.hpp"

namespace hier::model {

bool Machine::is_stalled(const Flight& flight) const
{
    return schedule_.kind == Schedule::Kind::stalled && flight.pair == schedule_.pair &&
           flight.number > schedule_.number;
}

// Does the network break its promise at this put?
bool Machine::meets(Schedule::Kind hazard, const Flight& flight) const
{
    return schedule_.kind == hazard && flight.pair == schedule_.pair &&
           flight.number == schedule_.number;
}

// Later puts of the pair land as if the lost one had landed.
void Machine::lose(std::uint32_t number)
{
    Flight& flight = flights_[number];
    flight.payload_done = flight.signal_done = true;
    flying_--;
    if (flight.after != Flight::none) push(Event::Kind::payload, flight.after);
}

void Machine::push(Event::Kind kind, std::uint32_t flight)
{
    if (is_stalled(flights_[flight])) return;
    if (meets(Schedule::Kind::signal_first, flights_[flight])) kind = Event::Kind::signal;
    events_.push_on(flights_[flight].pair, {kind, flights_[flight].pair.from, flight});
}

void Machine::launch(Flight flight)
{
    const auto number = static_cast<std::uint32_t>(flights_.size());
    bool may_land = true;
    if (flight.pair.level == Level::rail) {
        auto& last = last_flight_[index(flight.pair.from) * ranks_.size() + index(flight.pair.to)];
        if (last != Flight::none) {
            flight.before = last;
            flights_[last].after = number;
            may_land = flights_[last].payload_done;
        }
        last = number;
    } else {
        auto& sent = at(flight.pair.from).sent[index(flight.pair.to)];
        for (const std::uint32_t before : sent) {
            if (flights_[before].is_done && !flights_[before].signal_done)
                flight.earlier.push_back(before);
        }
        sent.push_back(number);
    }
    flights_.push_back(std::move(flight));
    flying_++;
    if (may_land) push(Event::Kind::payload, number);
}

// Keeps an event that comes before its call, if that call takes early events. A rail moves only
// while both of its ends make progress.
bool Machine::park(const Pair& pair, const Event& event)
{
    const int call = event.kind == Event::Kind::announcement ? announcements_[event.index].call
                                                             : flights_[event.index].call;
    if (calls_[index(call)].keeps_early(pair.level, pair.from) && at(pair.to).call < call) {
        at(pair.to).parked.push_back(event);
        return true;
    }
    if (pair.level == Level::node) return false;
    const bool is_drained =
        event.kind == Event::Kind::announcement && announcements_[event.index].is_drained;
    for (const int end : {pair.from, pair.to}) {
        if (at(end).inside || (end == pair.from && is_drained)) continue;
        at(end).parked.push_back(event);
        return true;
    }
    return false;
}

// Where a put lands, in the receiver's current call.
Machine::Target Machine::target_of(const Flight& flight)
{
    const auto [level, from, to] = flight.pair;
    if (level == Level::node || !call_of(to).bounce_at(to))
        return {at(to).receive, flight.home.offset};
    std::size_t place = 0;
    for (const BouncePlace& p : at(to).plan->bounce_places)
        place = p.peer == from ? p.offset : place;
    return {at(to).bounce, place + flight.packed};
}

void Machine::land_payload(const Event& event)
{
    Flight& flight = flights_[event.index];
    if (park(flight.pair, event)) return;
    RankState& target = at(flight.pair.to);
    const auto op = static_cast<int>(flight.op);
    if (!target.inside || target.call != flight.call) {
        return fail(Fault::stray, flight.call, flight.pair.from, op);
    }

    if (meets(Schedule::Kind::chunk_lost, flight)) return lose(event.index);
    const std::size_t part = next_part(flight.home.length, flight.landed);
    const bool is_lost = meets(Schedule::Kind::data_lost, flight);
    const Target into = target_of(flight);
    if (!into.buffer.covers(into.at, flight.home.length))
        return fail(Fault::outside_shards, flight.call, flight.pair.from, op);
    if (!is_lost &&
        !into.buffer.write(into.at + flight.landed, {flight.home.offset + flight.landed, part})) {
        return fail(Fault::written_twice, flight.call, flight.pair.from, op);
    }
    flight.landed += part;
    if (flight.landed < flight.home.length) return push(Event::Kind::payload, event.index);

    flight.payload_done = true;
    if (flight.after != Flight::none) push(Event::Kind::payload, flight.after);
    const bool first = flight.before == Flight::none || flights_[flight.before].signal_done;
    if (first) push(Event::Kind::signal, event.index);
}

bool Machine::waits_for_earlier(std::uint32_t number)
{
    for (const std::uint32_t before : flights_[number].earlier) {
        if (flights_[before].signal_done) continue;
        flights_[before].later.push_back(number);
        return true;
    }
    return false;
}

void Machine::land_signal(const Event& event)
{
    Flight& flight = flights_[event.index];
    if (park(flight.pair, event) || waits_for_earlier(event.index)) return;
    const auto [level, from, to] = flight.pair;
    RankState& target = at(to);
    if (!target.inside || target.call != flight.call) {
        return fail(Fault::stray, flight.call, from, static_cast<int>(flight.op));
    }

    // On a rail a signal counts all chunks so far, so it covers a chunk that was lost before.
    const bool covers_a_loss =
        flight.before != Flight::none && meets(Schedule::Kind::chunk_lost, flights_[flight.before]);
    const Target into = target_of(flight);
    if (covers_a_loss || !into.buffer.has_landed(into.at, flight.home.length))
        return fail(Fault::signal_without_data, flight.call, from, static_cast<int>(flight.op));

    flight.signal_done = true;
    flying_--;
    if (flight.after != Flight::none && flights_[flight.after].payload_done) {
        push(Event::Kind::signal, flight.after);
    }
    for (const std::uint32_t later : flight.later) push(Event::Kind::signal, later);
    into.buffer.confirm(into.at, flight.home.length);
    target.peers[index(from)].arrived[index(level)]++;
    const bool is_published = level == Level::node && call_of(to).publishes_at(from);
    if (is_published || call_of(to).keeps_early(level, to))
        note_presence(flight.pair, flight.call, is_published && call_of(to).is_mixed());
    offer_blocked(to);
    if (at(from).call == flight.call) {
        at(from).peers[index(to)].landed[index(level)]++;
        end_drains(from);
    }
}

void Machine::land_announcement(const Event& event)
{
    const Announcement& a = announcements_[event.index];
    if (park(a.pair, event)) return;
    note_presence(a.pair, a.call, a.lets_write);
}

// A rank shows that it is in the call by an announcement or a word. Where nobody announces, its
// puts do.
void Machine::note_presence(const Pair& pair, int call, bool lets_write)
{
    int& entered = at(pair.to).entered[index(pair.from)][index(pair.level)];
    entered = std::max(entered, call);
    int& announced = at(pair.to).announced[index(pair.from)][index(pair.level)];
    if (lets_write) announced = std::max(announced, call);
    offer_blocked(pair.to);
}

// Nothing can happen any more, and one pair has stopped. The receiver must have forwarded all that
// arrived on it: to the other ranks of its node, and in a ring to the next node.
void Machine::check_forwarded()
{
    for (const Flight& flight : flights_) {
        if (flight.pair != schedule_.pair || !flight.signal_done) continue;
        const int holder = flight.pair.to;
        const Call& call = calls_[index(flight.call)];
        for (const int peer : topo_.ranks_on(topo_.node_of(holder))) {
            if (!at(peer).receive.holds(flight.home)) {
                return fail(Fault::not_forwarded, flight.call, holder);
            }
        }
        for (int source = 0; source < topo_.size() && call.route == Route::ring; source++) {
            const Extent shard = call.shard(source);
            const int next = (topo_.node_of(holder) + 1) % topo_.nodes();
            const bool is_its = flight.home.offset >= shard.offset &&
                                flight.home.offset < shard.offset + shard.length;
            // The rail of the shard's owner or of its carrier leads to one of these.
            const auto ranks = topo_.ranks_on(next);
            const bool is_there = std::any_of(ranks.begin(), ranks.end(), [&](int entry) {
                const Place place = call.bounce_at(entry) ? Place::bounce : Place::receive;
                return at(entry).buffer(place).holds(flight.home);
            });
            if (is_its && next != topo_.node_of(source) && !is_there) {
                return fail(Fault::not_forwarded, flight.call, holder);
            }
        }
    }
}

}  // namespace hier::model
