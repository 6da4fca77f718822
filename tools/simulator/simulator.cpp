// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include "net/stripes.hpp"

namespace bench::simulator {

using hier::Level;
using hier::Op;

// The receiver decides the order of ties, never the sender. So a node that is run alone sees the same
// order as one that is run among all. Announcements of one moment come in the order of the pairs, as
// in one pass of the executor.
bool Simulation::Event::operator>(const Event& other) const
{
    return std::tie(at, kind, rank, op, peer) >
           std::tie(other.at, other.kind, other.rank, other.op, other.peer);
}

Simulation::Simulation(const hier::Topology& topology, const Machine& machine, Symmetry symmetry,
                       const Planner& planner)
    : topology_(topology), machine_(machine), symmetry_(symmetry)
{
    const std::size_t nodes = symmetry == Symmetry::none ? std::size_t(topology.nodes()) : 1;
    nic_stride_ = 1;
    std::size_t ranks = 0;
    for (std::size_t n = 0; n < nodes; n++) {
        const std::size_t here = topology.ranks_on(static_cast<int>(n)).size();
        const auto nics = static_cast<std::size_t>(machine.nics_of(static_cast<int>(here)));
        nic_stride_ = std::max(nic_stride_, nics);
        ranks += here;
    }
    egress_.assign(nodes * nic_stride_, 0);
    ingress_ = egress_;
    memory_.assign(nodes, 0);
    network_bytes_.assign(nodes, 0);
    ranks_.reserve(ranks);
    for (int r = 0; r < static_cast<int>(ranks); r++) {
        ranks_.emplace_back(planner(r), r, machine.stripes);
        ranks_.back().free_streams = machine.is_host ? 1 : machine.streams;
        remaining_ += ranks_.back().size();
    }
}

Simulation::Delivery Simulation::deliver(int from, int to) const
{
    const int hops = topology_.node_of(to) - topology_.node_of(from);
    if (symmetry_ == Symmetry::none || hops == 0) {
        return {to, from};
    }
    const int nodes = topology_.nodes();
    const int node = symmetry_ == Symmetry::rotation ? (nodes - hops) % nodes : hops;
    const auto peers = topology_.ranks_on(node);
    return {topology_.local_of(to), peers[static_cast<std::size_t>(topology_.local_of(from))]};
}

void Simulation::schedule(Time at, Kind kind, int number, int peer, OpIndex op)
{
    events_.push({at, number, peer, op, kind});
}

Outcome Simulation::run()
{
    Outcome outcome;
    outcome.ops = remaining_;
    for (int r = 0; r < static_cast<int>(ranks_.size()); r++) {
        outcome.max_ops = std::max<std::uint64_t>(outcome.max_ops, rank(r).size());
        schedule(topology_.local_of(r) * from_seconds(machine_.skew), Kind::enter, r);
    }
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at;
        handle(event);
    }
    if (remaining_ > 0) {
        throw std::runtime_error("the plans never end: " + std::to_string(remaining_) + " of " +
                                 std::to_string(outcome.ops) + " ops are left");
    }
    Time end = 0;
    for (const Rank& r : ranks_) {
        end = std::max(end, r.ended);
    }
    outcome.seconds = static_cast<double>(end) * 1e-12 + machine_.overhead;
    outcome.network_bytes = *std::max_element(network_bytes_.begin(), network_bytes_.end());
    return outcome;
}

void Simulation::handle(const Event& event)
{
    switch (event.kind) {
    case Kind::enter:
        enter(event.rank);
        break;
    case Kind::announced:
        announced(event.rank, event.op);
        issue_rail(event.rank);
        break;
    case Kind::at_nic:
        receive(event);
        break;
    case Kind::landed:
        if (rank(event.rank).has_entered) {
            take_message(event.rank, event.peer, event.op);
        } else {
            rank(event.rank).early_messages.emplace_back(event.peer, event.op);
        }
        break;
    case Kind::taken:
        arrived(event.peer, rank(event.peer).op(event.op).peer, event.op);
        issue_rail(event.rank);
        break;
    case Kind::sent:
        rank(event.rank).in_flight--;
        finish(event.rank, event.op);
        issue_rail(event.rank);
        break;
    case Kind::copied: {
        rank(event.rank).free_streams++;
        const Op& op = rank(event.rank).op(event.op);
        finish(event.rank, event.op);
        issue_rail(event.rank);
        if (op.kind == Op::Kind::put && op.peer == Op::every_peer) {
            for (const int peer : topology_.ranks_on(topology_.node_of(event.rank))) {
                if (peer != event.rank) {
                    enqueue_copy(peer, event.op, event.rank);
                }
            }
        } else if (op.kind == Op::Kind::put) {
            arrived(event.rank, op.peer, event.op);
            issue_rail(op.peer);
        }
        wake(event.rank);
        break;
    }
    case Kind::read:
        rank(event.rank).free_streams++;
        arrived(event.peer, event.rank, event.op);
        issue_rail(event.rank);
        wake(event.rank);
        break;
    case Kind::look:
        look_at_queue(event.rank);
        break;
    }
}

void Simulation::enter(int number)
{
    // A run of one op may run others, whose last dependency it ends. So list the first ops before.
    std::vector<OpIndex> first;
    for (OpIndex i = 0; i < rank(number).size(); i++) {
        if (rank(number).pending[i] == 0) {
            first.push_back(i);
        }
    }
    for (const OpIndex i : first) {
        run_op(number, i);
    }
    rank(number).has_entered = true;
    for (const std::uint32_t pair : rank(number).early) {
        announced(number, pair);
    }
    for (const auto& [from, op] : rank(number).early_messages) {
        take_message(number, from, op);
    }
    wake(number);
    issue_rail(number);
}

// Starts an op whose dependencies are all done.
void Simulation::run_op(int number, OpIndex i)
{
    const Op& op = rank(number).op(i);
    switch (op.kind) {
    case Op::Kind::announce:
        announce(number, i);
        finish(number, i);
        break;
    case Op::Kind::enter:  // not in plans of equal shards
    case Op::Kind::drain:
        finish(number, i);
        break;
    case Op::Kind::copy:
        enqueue_copy(number, i);
        break;
    case Op::Kind::put:
        if (op.level == Level::node) {
            enqueue_copy(number, i);
        } else {
            rank(number).mark_runnable(i);
        }
        break;
    case Op::Kind::await_announced:
    case Op::Kind::await_entered:
    case Op::Kind::await_data:
        break;
    }
}

void Simulation::finish(int number, OpIndex i)
{
    Rank& r = rank(number);
    remaining_--;
    r.ended = now_;
    for (const OpIndex next : r.successors(i)) {
        if (--r.pending[next] == 0) {
            run_op(number, next);
        }
    }
}

void Simulation::announce(int number, OpIndex i)
{
    const Op& op = rank(number).op(i);
    const bool is_rail = op.level == Level::rail;
    const Time at = now_ + from_seconds(is_rail ? machine_.nic_latency : machine_.link_latency);
    const auto tell = [&](int peer) {
        const Delivery d = deliver(number, peer);
        const std::uint32_t pair = rank(d.receiver).find(op.level, d.source);
        if (pair != Rank::no_pair) {
            schedule(at, Kind::announced, d.receiver, d.source, pair);
        }
    };
    if (op.peer != Op::every_peer) {
        tell(op.peer);
        return;
    }
    for (const int peer : topology_.ranks_on(topology_.node_of(number))) {
        if (peer != number) {
            tell(peer);
        }
    }
}

void Simulation::announced(int number, std::uint32_t pair)
{
    Pair& c = rank(number).pair(pair);
    if (!rank(number).has_entered) {
        rank(number).early.insert(pair);
        return;
    }
    if (c.is_ready) {
        return;
    }
    c.is_ready = true;
    for (const OpIndex i : c.readies) {
        finish(number, i);
    }
}

// A put of `from` has arrived at `to`.
void Simulation::arrived(int from, int to, OpIndex i)
{
    const Op& op = rank(from).op(i);
    const Delivery d = deliver(from, to);
    Rank& receiver = rank(d.receiver);
    const std::uint32_t number = receiver.find(op.level, d.source);
    if (number == Rank::no_pair) {
        throw std::runtime_error("rank " + std::to_string(d.receiver) +
                                 " is written to by a rank that it does not expect");
    }
    // A rank that has put something is in the call, even if it has not announced.
    announced(d.receiver, number);
    Pair& c = receiver.pair(number);
    c.arrived[hier::stripe_of(op.count, c.arrived.size())]++;
    while (c.next_await < c.awaits.size() &&
           receiver.op(c.awaits[c.next_await]).count <= c.complete()) {
        finish(d.receiver, c.awaits[c.next_await++]);
    }
}

// The rank's core takes a message from the network.
void Simulation::take_message(int number, int from, OpIndex i)
{
    schedule(on_core(number, machine_.message), Kind::taken, number, from, i);
}

void Simulation::issue_rail(int number)
{
    Rank& r = rank(number);
    OpIndex i = 0;
    const int depth = machine_.depth > 0 ? machine_.depth : r.depth();
    while (r.in_flight < depth && r.next_on_rail(i)) {
        r.put_on_rail(i);
        send(number, i);
    }
}

Outcome simulate(const hier::Topology& topology, const Machine& machine, Symmetry symmetry,
                 const Planner& planner)
{
    return Simulation(topology, machine, symmetry, planner).run();
}

}  // namespace bench::simulator
