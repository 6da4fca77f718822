// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <stdexcept>
#include <string>

#include "net/stripes.hpp"

namespace bench::simulator {

using hier::Level;
using hier::Op;

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
        const Op& op = rank(event.rank).op(event.op);
        const Rank::Class queue = class_of(op);
        rank(event.rank).queues[queue].free_streams++;
        finish(event.rank, event.op);
        issue_rail(event.rank);
        if (op.kind == Op::Kind::put && op.peer == Op::every_peer) {
            for (const int peer : topology_.ranks_on(topology_.node_of(event.rank))) {
                if (peer != event.rank) {
                    enqueue_copy(peer, event.op, event.rank);
                }
            }
        } else if (op.kind == Op::Kind::put) {
            pushed(event.rank, event.op);
        }
        wake(event.rank, queue);
        break;
    }
    case Kind::read:
        rank(event.rank).queues[Rank::others].free_streams++;
        arrived(event.peer, event.rank, event.op);
        issue_rail(event.rank);
        wake(event.rank, Rank::others);
        break;
    case Kind::look:
        look_at_queue(event.rank, static_cast<Rank::Class>(event.op));
        break;
    case Kind::launch:
        launch_kernel(event.rank);
        break;
    case Kind::begins:
        begin_kernel(event.rank);
        break;
    case Kind::stored:
        end_kernel(event.rank);
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
    for (int queue = 0; queue < Rank::classes; queue++)
        wake(number, static_cast<Rank::Class>(queue));
    wake_kernels(number);
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
            enqueue_push(number, i);
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

// A put of this rank has arrived on its node.
void Simulation::pushed(int number, OpIndex i)
{
    const int peer = rank(number).op(i).peer;
    arrived(number, peer, i);
    issue_rail(peer);
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
