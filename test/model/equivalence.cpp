// SPDX-License-Identifier: BSD-3-Clause
#include "equivalence.hpp"

#include <algorithm>

#include "draft.hpp"

namespace hier::model {

bool same_pair(const Op& a, const Op& b)
{
    return a.kind == b.kind && a.level == b.level && a.peer == b.peer;
}

Equivalence::Equivalence(const Topology& topology, int rank, const Call& call)
    : topo_(topology), rank_(rank), call_(call), plan_(call.plan(rank)),
      depended_(depended_on(plan_))
{
}

bool Equivalence::is_awaited_elsewhere(std::size_t i, const Op& op) const
{
    for (std::size_t j = 0; j < plan_.ops.size(); j++) {
        if (j != i && same_pair(op, plan_.ops[j]) && plan_.ops[j].count >= op.count) return true;
    }
    return false;
}

// Nothing depends on this await, and the plan has others that wait for at least as much, before the
// change and after it. The rank returns only when those are done. By then this one would be done
// too.
bool Equivalence::is_idle_await(std::size_t i, const Op& changed) const
{
    const Op& op = plan_.ops[i];
    return op.kind == Op::Kind::await_data && !depended_[i] && is_awaited_elsewhere(i, op) &&
           is_awaited_elsewhere(i, changed);
}

// Nothing follows this wait for a peer to come into the call. In a call in which nobody announces,
// the plan also waits for data of that peer.
bool Equivalence::is_idle_wait(std::size_t i) const
{
    const Op& op = plan_.ops[i];
    if (!awaits_peer(op.kind) || depended_[i]) return false;
    return op.kind == Op::Kind::await_announced ||
           std::any_of(plan_.ops.begin(), plan_.ops.end(), [&](const Op& o) {
               return o.kind == Op::Kind::await_data && o.level == op.level && o.peer == op.peer;
           });
}

// Put n of a rail pair is not issued before put n-1. That one has a dependency which implies this
// one: the same operation, or an await of at least as many puts of the same pair.
bool Equivalence::is_implied(const Op& op, std::uint32_t dependency) const
{
    if (op.kind != Op::Kind::put || op.level != Level::rail) return false;
    const Op& awaited = plan_.ops[dependency];
    for (const Op& before : plan_.ops) {
        if (!same_pair(before, op) || before.count + 1 != op.count) continue;
        for (const std::uint32_t d : plan_.dependencies_of(before)) {
            const Op& other = plan_.ops[d];
            const bool as_much = awaited.kind == Op::Kind::await_data &&
                                 same_pair(other, awaited) && other.count >= awaited.count;
            if (d == dependency || as_much) return true;
        }
    }
    return false;
}

// A put to a rank of the node waits for a put to another one. That rank is served first, and that
// is all: their buffers and counts have nothing to do with each other.
bool Equivalence::takes_its_turn(const Op& op, std::uint32_t dependency) const
{
    const auto is_put = [](const Op& o) {
        return o.kind == Op::Kind::put && o.level == Level::node;
    };
    const Op& first = plan_.ops[dependency];
    return is_put(op) && is_put(first) && first.peer != op.peer;
}

// A leader waits for more than its node's shards. More puts come in any case.
bool Equivalence::is_high_enough(std::size_t i) const
{
    const Op& op = plan_.ops[i];
    return op.level == Level::node && depended_[i] && op.count < node_puts_of(op.peer);
}

// How many puts of the peer on the node reach this rank.
std::uint32_t Equivalence::node_puts_of(int peer) const
{
    const auto& ops = call_.plan(peer).ops;
    return static_cast<std::uint32_t>(std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
        return op.kind == Op::Kind::put && op.level == Level::node &&
               (op.peer == rank_ || op.peer == Op::every_peer);
    }));
}

bool Equivalence::has_one_writer() const
{
    const auto ranks = topo_.ranks_on(topo_.node_of(rank_));
    const auto writers = std::count_if(ranks.begin(), ranks.end(), [&](int peer) {
        return peer != rank_ && node_puts_of(peer) > 0;
    });
    return writers == 1 && ranks.size() > 2;
}

bool Equivalence::is_the_only_peer(const Op& op, int peer) const
{
    const int node = topo_.node_of(rank_);
    return op.peer == Op::every_peer && topo_.ranks_on(node).size() == 2 && peer != rank_ &&
           topo_.node_of(peer) == node;
}

// The receiver does nothing between the arrivals of these two. And when the sender had the first
// where the rail reads it, the sender had the second there too.
bool Equivalence::is_order_free(const Op& first, const Op& second) const
{
    const auto had = plan_.dependencies_of(first);
    for (const std::uint32_t d : plan_.dependencies_of(second))
        if (std::find(had.begin(), had.end(), d) == had.end()) return false;
    const Plan& receiver = call_.plan(first.peer);
    const auto depended = depended_on(receiver);
    for (std::size_t i = 0; i < receiver.ops.size(); i++) {
        const Op& op = receiver.ops[i];
        const bool between = op.kind == Op::Kind::await_data && op.level == Level::rail &&
                             op.peer == rank_ && op.count >= first.count && op.count < second.count;
        if (between && depended[i]) return false;
    }
    return true;
}

}  // namespace hier::model
