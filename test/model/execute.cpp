// SPDX-License-Identifier: BSD-3-Clause
// The steps of a rank in a call.
#include <algorithm>
#include <iterator>

#include "machine.hpp"

namespace hier::model {

Machine::Dependents Machine::dependents_of(const Plan& plan)
{
    Dependents d;
    d.first.assign(plan.ops.size() + 1, 0);
    for (const std::uint32_t op : plan.dependencies) d.first[op + 1]++;
    for (std::size_t i = 1; i < d.first.size(); i++) d.first[i] += d.first[i - 1];
    d.ops.resize(plan.dependencies.size());
    auto next = d.first;
    for (std::uint32_t i = 0; i < plan.ops.size(); i++) {
        for (const std::uint32_t on : plan.dependencies_of(plan.ops[i])) d.ops[next[on]++] = i;
    }
    return d;
}

void Machine::enter(int rank)
{
    RankState& me = at(rank);
    me.call++;
    me.inside = true;
    const Call& call = call_of(rank);
    me.plan = &call.plan(rank);
    me.left = me.plan->ops.size();
    me.blocked.clear();
    me.drains.clear();
    me.copies.clear();
    me.flights.assign(me.plan->ops.size(), Flight::none);
    me.sent.assign(ranks_.size(), {});
    me.peers.assign(ranks_.size(), {});
    me.receive.clear(call.shards);
    if (call.bounce_at(rank)) me.bounce.clear(me.plan->bounce_bytes);
    const Extent own = call.shard(rank);
    if (call.in_place_at(rank)) me.receive.confirm(own.offset, own.length);

    for (const Event& event : me.parked) {
        const bool is_announcement = event.kind == Event::Kind::announcement;
        const Pair& pair =
            is_announcement ? announcements_[event.index].pair : flights_[event.index].pair;
        events_.push_on(pair, event);
    }
    me.parked.clear();

    me.missing.clear();
    for (const Op& op : me.plan->ops) me.missing.push_back(op.dependencies);
    for (std::uint32_t i = 0; i < me.plan->ops.size(); i++) {
        if (me.missing[i] == 0) offer(rank, i);
    }
    if (me.left == 0) leave(rank);
}

// A ready operation stays ready until it runs. All values that is_ready() looks at only grow. And
// only put n itself lets the next put of a rail pair follow.
void Machine::offer(int rank, std::uint32_t op)
{
    if (is_ready(rank, at(rank).plan->ops[op])) {
        events_.push_by_rank({Event::Kind::op, rank, op});
    } else {
        at(rank).blocked.push_back(op);
    }
}

void Machine::offer_blocked(int rank)
{
    if (!at(rank).inside) return;
    auto& blocked = at(rank).blocked;
    for (std::size_t i = 0; i < blocked.size();) {
        if (!is_ready(rank, at(rank).plan->ops[blocked[i]])) {
            i++;
            continue;
        }
        events_.push_by_rank({Event::Kind::op, rank, blocked[i]});
        blocked[i] = blocked.back();
        blocked.pop_back();
    }
}

bool Machine::is_ready(int rank, const Op& op) const
{
    const RankState& me = at(rank);
    const std::size_t level = index(op.level);
    switch (op.kind) {
    case Op::Kind::copy:
    case Op::Kind::announce:
    case Op::Kind::enter:
    case Op::Kind::drain:
        return true;
    case Op::Kind::await_entered:
        return me.entered[index(op.peer)][level] >= me.call;
    case Op::Kind::await_announced:
        return me.announced[index(op.peer)][level] >= me.call;
    case Op::Kind::await_data:
        return me.peers[index(op.peer)].arrived[level] >= op.count;
    case Op::Kind::put:
        return op.level == Level::node || me.peers[index(op.peer)].issued[level] + 1 == op.count;
    }
    return false;
}

void Machine::execute(int rank, std::uint32_t op)
{
    RankState& me = at(rank);
    const Op& what = me.plan->ops[op];
    switch (what.kind) {
    case Op::Kind::copy:
        return copy(rank, op);
    case Op::Kind::announce:
    case Op::Kind::enter:
        announce(rank, what);
        return complete(rank, op);
    case Op::Kind::await_announced:
    case Op::Kind::await_entered:
    case Op::Kind::await_data:
        return complete(rank, op);
    case Op::Kind::put:
        return put(rank, op);
    case Op::Kind::drain:
        return begin_drain(rank, op);
    }
}

// Inside a node an announcement is a store to shared memory. Over a rail it is a message.
void Machine::announce(int rank, const Op& op)
{
    const int call = at(rank).call;
    // In a mixed call a rank that publishes lets nobody write, but others may send to it.
    const bool lets_send = op.level == Level::node && call_of(rank).is_mixed();
    const bool lets_write = op.kind == Op::Kind::announce || lets_send;
    if (op.level == Level::rail) {
        const Pair pair{Level::rail, rank, op.peer};
        const auto number = static_cast<std::uint32_t>(announcements_.size());
        announcements_.push_back({pair, call, lets_write});
        events_.push_on(pair, {Event::Kind::announcement, rank, number});
        return;
    }
    for (const int peer : topo_.ranks_on(topo_.node_of(rank))) {
        if (peer == rank || (op.peer != Op::every_peer && op.peer != peer)) continue;
        note_presence({Level::node, rank, peer}, call, lets_write);
    }
}

std::vector<int> Machine::targets_of(int rank, const Op& op) const
{
    if (op.peer != Op::every_peer) return {op.peer};
    std::vector<int> targets;
    for (const int peer : topo_.ranks_on(topo_.node_of(rank)))
        if (peer != rank) targets.push_back(peer);
    return targets;
}

void Machine::put(int rank, std::uint32_t op)
{
    RankState& me = at(rank);
    const Op& what = me.plan->ops[op];
    const bool is_kept = call_of(rank).keeps_early(what.level, rank);
    me.flights[op] = static_cast<std::uint32_t>(flights_.size());
    for (const int target : targets_of(rank, what)) {
        // An older announcement is for the buffer of an earlier collective. With a newer one the
        // peer has left this collective.
        Fault fault = Fault::put_unannounced;
        if (is_kept || me.announced[index(target)][index(what.level)] == me.call)
            fault = fault_of_read(rank, what);
        if (fault != Fault::none) return fail(fault, me.call, rank, static_cast<int>(op));
        me.peers[index(target)].issued[index(what.level)]++;
        launch({{what.level, rank, target},
                me.call,
                op,
                what.count,
                home_of(rank, what),
                what.packed});
    }
    events_.push_by_rank({Event::Kind::done, rank, op});
    if (what.level == Level::rail) offer_blocked(rank);
}

// The bytes that an operation moves.
Extent Machine::home_of(int rank, const Op& op) const
{
    return model::home_of(op, call_of(rank).shard(rank));
}

Fault Machine::fault_of_read(int rank, const Op& op) const
{
    const Extent home = home_of(rank, op);
    if (op.from == Place::send || at(rank).buffer(op.from).holds(op.slice.source, home))
        return Fault::none;
    const Extent own = call_of(rank).shard(rank);
    const bool is_own =
        home.offset >= own.offset && home.offset + home.length <= own.offset + own.length;
    return is_own ? Fault::own_not_copied : Fault::not_held;
}

void Machine::copy(int rank, std::uint32_t op)
{
    RankState& me = at(rank);
    const Fault fault = fault_of_read(rank, me.plan->ops[op]);
    if (fault != Fault::none) return fail(fault, me.call, rank, static_cast<int>(op));
    const auto number = static_cast<std::uint32_t>(me.copies.size());
    me.copies.push_back({op});
    events_.push_by_rank({Event::Kind::copy, rank, number});
}

void Machine::go_on_with_copy(const Event& event)
{
    RankState& me = at(event.rank);
    RankState::Copy& copy = me.copies[event.index];
    const Op& op = me.plan->ops[copy.op];
    const std::size_t part = next_part(op.slice.length, copy.moved);
    const Extent home{home_of(event.rank, op).offset + copy.moved, part};
    if (!me.buffer(op.to).write(op.slice.target + copy.moved, home)) {
        return fail(Fault::written_twice, me.call, event.rank, static_cast<int>(copy.op));
    }
    copy.moved += part;
    const bool is_whole = copy.moved == op.slice.length;
    events_.push_by_rank(is_whole ? Event{Event::Kind::done, event.rank, copy.op} : event);
}

void Machine::done(int rank, std::uint32_t op)
{
    const Op& what = at(rank).plan->ops[op];
    if (what.kind == Op::Kind::copy)
        at(rank).buffer(what.to).confirm(what.slice.target, what.slice.length);
    const std::size_t flights = what.kind == Op::Kind::put ? targets_of(rank, what).size() : 0;
    for (std::size_t i = 0; i < flights; i++) flights_[at(rank).flights[op] + i].is_done = true;
    complete(rank, op);
}

void Machine::begin_drain(int rank, std::uint32_t op)
{
    const Op& what = at(rank).plan->ops[op];
    const RankState::Peer& peer = at(rank).peers[index(what.peer)];
    for (Announcement& a : announcements_)
        a.is_drained = a.is_drained || a.pair == Pair{what.level, rank, what.peer};
    at(rank).drains.push_back({op, peer.issued[index(what.level)]});
    end_drains(rank);
}

void Machine::end_drains(int rank)
{
    if (!at(rank).inside) return;
    auto& drains = at(rank).drains;
    for (std::size_t i = 0; i < drains.size();) {
        const RankState::Drain drain = drains[i];
        const Op& op = at(rank).plan->ops[drain.op];
        const RankState::Peer& peer = at(rank).peers[index(op.peer)];
        if (peer.landed[index(op.level)] < drain.puts) {
            i++;
            continue;
        }
        drains[i] = drains.back();
        drains.pop_back();
        complete(rank, drain.op);
    }
}

void Machine::complete(int rank, std::uint32_t op)
{
    RankState& me = at(rank);
    const Dependents& d = dependents(rank);
    for (std::uint32_t i = d.first[op]; i < d.first[op + 1]; i++) {
        if (--me.missing[d.ops[i]] == 0) offer(rank, d.ops[i]);
    }
    if (--me.left == 0) leave(rank);
}

// Has the rank put to this peer without asking whether it is in the call?
bool Machine::is_put_to_early(int rank, int peer) const
{
    const auto& issued = at(rank).peers[index(peer)].issued;
    return std::any_of(std::begin(all_levels), std::end(all_levels), [&](Level level) {
        return call_of(rank).keeps_early(level, rank) && issued[index(level)] > 0;
    });
}

void Machine::leave(int rank)
{
    RankState& me = at(rank);
    if (!me.receive.complete()) return fail(Fault::returned_early, me.call, rank);
    for (int peer = 0; peer < topo_.size(); peer++) {
        if (is_put_to_early(rank, peer) && at(peer).call < me.call)
            return fail(Fault::left_alone, me.call, rank);
    }
    me.inside = false;
    if (index(me.call) + 1 < calls_.size()) {
        events_.push_by_rank({Event::Kind::enter, rank, 0});
    } else {
        unfinished_--;
    }
}

}  // namespace hier::model
