// SPDX-License-Identifier: BSD-3-Clause
#include "exec/program.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "hier/transport.hpp"

namespace hier {
namespace {

bool waits(Op::Kind kind) { return awaits_peer(kind) || kind == Op::Kind::await_data; }

}  // namespace

Program::Program(Plan plan, const Topology& topology, int rank)
    : plan_(std::move(plan)), peer_(plan_.ops.size(), Op::every_peer)
{
    link_successors();
    check_places(rank);
    build_pairs(topology, rank);
    find_places(topology, rank);
    find_exchange();
}

void Program::link_successors()
{
    const std::uint32_t n = size();
    pending_.resize(n);
    first_successor_.assign(n + 1, 0);
    for (std::uint32_t i = 0; i < n; i++) {
        pending_[i] = op(i).dependencies;
        if (op(i).dependencies == 0 && !waits(op(i).kind)) first_ops_.push_back(i);
        for (const std::uint32_t d : plan_.dependencies_of(op(i))) {
            if (d >= i) throw SetupError(format("op %u depends on a later op %u", i, d));
            first_successor_[d + 1]++;
        }
    }
    for (std::uint32_t i = 0; i < n; i++) first_successor_[i + 1] += first_successor_[i];
    successors_.resize(first_successor_[n]);
    std::vector<std::uint32_t> next(first_successor_.begin(), first_successor_.end() - 1);
    for (std::uint32_t i = 0; i < n; i++) {
        for (const std::uint32_t d : plan_.dependencies_of(op(i))) successors_[next[d]++] = i;
    }
}

// A bounce buffer may be missing in a call. The binding of the call decides that.
void Program::check_places(int rank) const
{
    for (std::uint32_t i = 0; i < size(); i++) {
        const Op& o = op(i);
        if (o.kind == Op::Kind::copy && (o.level != Level::node || o.peer != rank))
            throw SetupError(format("op %u copies, but not on the node level of its own rank", i));
        if (o.kind == Op::Kind::copy && (o.from == o.to || o.to == Place::send))
            throw SetupError(format("op %u copies a buffer to itself or to the send buffer", i));
        if (o.kind == Op::Kind::put && o.level == Level::rail && o.peer == Op::every_peer)
            throw SetupError(format("op %u puts to everybody on the rail level", i));
        if (o.kind == Op::Kind::put && o.level == Level::node && o.from == Place::bounce)
            throw SetupError(format("op %u puts from the bounce buffer on the node level", i));
    }
}

std::size_t Program::bytes() const
{
    const auto of = [](const auto& table) { return table.capacity() * sizeof table[0]; };
    std::size_t bytes = of(plan_.ops) + of(plan_.dependencies) + of(pending_) + of(first_ops_) +
                        of(first_successor_) + of(successors_) + of(peer_);
    for (const auto& level : pairs_) {
        bytes += of(level);
        for (const Pair& pair : level) bytes += of(pair.puts) + of(pair.awaits) + of(pair.readies);
    }
    return bytes;
}

bool Program::opens_the_rail() const
{
    const auto is_at_hand = [&](std::uint32_t d) {
        const Op& o = op(d);
        const bool feeds_the_rail = o.kind == Op::Kind::copy && o.to == Place::bounce;
        return awaits_peer(o.kind) || (feeds_the_rail && o.dependencies == 0);
    };
    return std::any_of(plan_.ops.begin(), plan_.ops.end(), [&](const Op& o) {
        const auto after = plan_.dependencies_of(o);
        return o.kind == Op::Kind::put && o.level == Level::rail &&
               std::all_of(after.begin(), after.end(), is_at_hand);
    });
}

void Program::build_pairs(const Topology& topology, int rank)
{
    std::map<std::pair<Level, int>, std::size_t> known;
    for (std::uint32_t i = 0; i < size(); i++) {
        const Op& o = op(i);
        if (waits(o.kind) && o.dependencies > 0)
            throw SetupError(format("op %u waits, but only after another op", i));
        if (o.peer == Op::every_peer || o.peer == rank) continue;

        const bool same_node = topology.node_of(o.peer) == topology.node_of(rank);
        const bool same_rail = topology.rail_of(o.peer) == topology.rail_of(rank);
        if (o.level == Level::node ? !same_node : same_node || !same_rail) {
            throw SetupError(format("op %u reaches rank %d on the wrong level", i, o.peer));
        }
        peer_[i] =
            o.level == Level::node ? topology.local_of(o.peer) : topology.rail_index_of(o.peer);

        auto& pairs = pairs_[static_cast<std::size_t>(o.level)];
        const auto [it, is_new] = known.try_emplace({o.level, o.peer}, pairs.size());
        if (is_new) pairs.push_back({peer_[i], o.peer, {}, {}, {}});
        Pair& pair = pairs[it->second];
        if (o.kind == Op::Kind::put) pair.puts.push_back(i);
        if (o.kind == Op::Kind::await_data) pair.awaits.push_back(i);
        if (awaits_peer(o.kind)) pair.readies.push_back(i);
        if (o.count > Signal::max_count)
            throw SetupError(format("op %u: more than %u chunks", i, Signal::max_count));
    }
    const auto by_count = [&](std::uint32_t a, std::uint32_t b) {
        return op(a).count < op(b).count;
    };
    for (auto& level : pairs_) {
        for (Pair& c : level) {
            std::stable_sort(c.puts.begin(), c.puts.end(), by_count);
            std::stable_sort(c.awaits.begin(), c.awaits.end(), by_count);
        }
    }
}

void Program::find_places(const Topology& topology, int rank)
{
    if (plan_.bounce_bytes == 0) return;
    bounce_places_.resize(topology.ranks_on_rail(topology.rail_of(rank)).size());
    for (const BouncePlace& place : plan_.bounce_places)
        bounce_places_[static_cast<std::size_t>(topology.rail_index_of(place.peer))] = place.offset;
}

Transfer Program::transfer(std::uint32_t i) const
{
    const Op& o = op(i);
    return {peer_[i], o.slice, o.from, o.to, o.count, i, o.packed};
}

void Program::find_exchange()
{
    std::vector<std::uint32_t> puts, copies;
    for (std::uint32_t i = 0; i < size(); i++) {
        const Op& o = op(i);
        // A block also proves that its sender is in the call.
        const bool is_proven =
            o.kind == Op::Kind::await_entered || (o.kind == Op::Kind::await_data && o.count == 1);
        const bool is_put = o.kind == Op::Kind::put && o.peer == Op::every_peer;
        const bool is_copy = o.kind == Op::Kind::copy && o.to == Place::receive;
        if (o.level != Level::node || o.dependencies > 0 || !(is_proven || is_put || is_copy))
            return;
        if (is_put) puts.push_back(i);
        if (is_copy) copies.push_back(i);
    }
    const auto peers = pairs(Level::node);
    const bool has_one_of_each = std::all_of(
        peers.begin(), peers.end(), [](const Pair& pair) { return pair.awaits.size() == 1; });
    if (!has_one_of_each || puts.size() != 1 || copies.size() > 1) return;
    exchange_ = NodeExchange{transfer(puts[0]), {}};
    if (!copies.empty()) exchange_->copy = transfer(copies[0]);
}

}  // namespace hier
