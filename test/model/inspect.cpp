// SPDX-License-Identifier: BSD-3-Clause
// The faults that one plan shows without a run.
#include <algorithm>
#include <array>
#include <utility>

#include "model.hpp"

namespace hier::model {
namespace {

class Inspector {
public:
    Inspector(const Topology& topology, int rank, const Call& call)
        : topo_(topology), rank_(rank), call_(call)
    {
        for (auto& numbers : numbers_) numbers.resize(static_cast<std::size_t>(topology.size()));
    }

    Verdict inspect()
    {
        const Plan& plan = call_.plan(rank_);
        for (std::size_t i = 0; i < plan.ops.size(); i++) {
            Fault fault = look_at(plan.ops[i]);
            for (const std::uint32_t d : plan.dependencies_of(plan.ops[i])) {
                if (d >= i) fault = Fault::bad_dependency;
            }
            if (fault != Fault::none) return {fault, -1, rank_, static_cast<int>(i)};
        }
        for (auto& numbers : numbers_) {
            for (auto& pair : numbers) {
                if (!counts_from_one(pair)) return {Fault::wrong_count, -1, rank_, -1};
            }
        }
        return {};
    }

private:
    Fault look_at(const Op& op)
    {
        switch (op.kind) {
        case Op::Kind::copy:
            if (op.peer != rank_ || op.level != Level::node) return Fault::wrong_peer;
            if (op.from == op.to || op.to == Place::send) return Fault::wrong_place;
            if (!has(op.from) || !has(op.to)) return Fault::wrong_place;
            return source_holds(op);
        case Op::Kind::announce:
        case Op::Kind::enter:
            if (op.level == Level::node && op.peer == Op::every_peer) return Fault::none;
            return is_peer(op) ? Fault::none : Fault::wrong_peer;
        case Op::Kind::await_announced:
        case Op::Kind::await_entered:
        case Op::Kind::await_data:
        case Op::Kind::drain:
            return is_peer(op) ? Fault::none : Fault::wrong_peer;
        case Op::Kind::put:
            if (!is_target(op)) return Fault::wrong_peer;
            if (!can_be_put(op)) return Fault::wrong_place;
            if (const Fault fault = source_holds(op); fault != Fault::none) return fault;
            return number(op);
        }
        return Fault::wrong_peer;
    }

    bool is_peer(const Op& op) const
    {
        if (op.peer < 0 || op.peer >= topo_.size() || op.peer == rank_) return false;
        const bool same_node = topo_.node_of(op.peer) == topo_.node_of(rank_);
        if (op.level == Level::node) return same_node;
        return !same_node && topo_.rail_of(op.peer) == topo_.rail_of(rank_);
    }

    bool is_target(const Op& op) const
    {
        if (op.level == Level::node && call_.publishes_at(rank_)) return op.peer == Op::every_peer;
        return is_peer(op);
    }

    bool has(Place place) const { return place != Place::bounce || call_.bounce_at(rank_); }

    // The network reads the bounce buffer if there is one. The node level never reads it.
    bool can_be_put(const Op& op) const
    {
        const bool must_land = op.level == Level::rail && call_.bounce_at(rank_);
        return (op.from == Place::bounce) == must_land;
    }

    // Written so that an offset near the end of the range cannot wrap around.
    static bool is_within(Extent part, Extent whole)
    {
        return part.offset >= whole.offset && part.length <= whole.length &&
               part.offset - whole.offset <= whole.length - part.length;
    }

    // The bytes belong to one shard, or in a bundle to several that lie side by side.
    bool inside_shards(Extent slice) const
    {
        if (call_.route != Route::bundles) {
            return std::any_of(call_.shards.begin(), call_.shards.end(),
                               [&](Extent shard) { return is_within(slice, shard); });
        }
        std::size_t covered = 0;
        for (const Extent shard : call_.shards) {
            const std::size_t begin = std::max(slice.offset, shard.offset);
            const std::size_t end =
                std::min(slice.offset + slice.length, shard.offset + shard.length);
            if (begin < end) covered += end - begin;
        }
        return covered == slice.length;
    }

    // A byte has its home offset in the receive buffer. The send buffer holds the own shard alone.
    // The contents of the receive buffer and the bounce buffer show when the plan runs.
    Fault source_holds(const Op& op) const
    {
        const Extent own = call_.shard(rank_);
        const Extent home = home_of(op, own);
        const Extent all_of_bounce{0, call_.plan(rank_).bounce_bytes};
        const bool is_to_bounce = op.kind == Op::Kind::copy && op.to == Place::bounce;
        if (!inside_shards(home)) return Fault::outside_shards;
        if (is_to_bounce && !is_within({op.slice.target, op.slice.length}, all_of_bounce))
            return Fault::outside_shards;
        if (op.from == Place::bounce) return Fault::none;
        if (op.from == Place::receive)
            return op.slice.source == home.offset ? Fault::none : Fault::wrong_source;
        const bool holds = !call_.in_place_at(rank_) && is_within(home, own) &&
                           op.slice.source == home.offset - own.offset;
        return holds ? Fault::none : Fault::wrong_source;
    }

    Fault number(const Op& op)
    {
        const int peer = op.peer == Op::every_peer ? rank_ : op.peer;
        auto& numbers =
            numbers_[static_cast<std::size_t>(op.level)][static_cast<std::size_t>(peer)];
        numbers.push_back(op.count);
        const bool in_order = op.level == Level::node || op.count == numbers.size();
        return in_order ? Fault::none : Fault::wrong_count;
    }

    static bool counts_from_one(std::vector<std::uint32_t>& numbers)
    {
        std::sort(numbers.begin(), numbers.end());
        for (std::size_t i = 0; i < numbers.size(); i++) {
            if (numbers[i] != i + 1) return false;
        }
        return true;
    }

    const Topology& topo_;
    int rank_;
    const Call& call_;
    std::array<std::vector<std::vector<std::uint32_t>>, 2>
        numbers_;  // by level and peer; puts to all count at this rank
};

}  // namespace

Verdict inspect(const Topology& topology, int rank, const Call& call)
{
    return Inspector(topology, rank, call).inspect();
}

Verdict inspect(const Topology& topology, std::span<const Call> calls)
{
    for (std::size_t c = 0; c < calls.size(); c++) {
        for (int r = 0; r < topology.size(); r++) {
            Verdict verdict = inspect(topology, r, calls[c]);
            verdict.call = static_cast<int>(c);
            if (verdict) return verdict;
        }
    }
    return {};
}

}  // namespace hier::model
