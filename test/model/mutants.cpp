// SPDX-License-Identifier: BSD-3-Clause
#include "mutants.hpp"

#include <algorithm>
#include <numeric>

#include "draft.hpp"
#include "equivalence.hpp"

namespace hier::model {
namespace {

// Makes every change but those that change nothing (Equivalence).
class Mutator {
public:
    Mutator(const Topology& topology, int rank, const Call& call)
        : topo_(topology), rank_(rank), call_(call), plan_(call.plan(rank)),
          equivalence_(topology, rank, call)
    {
    }

    std::vector<Mutant> mutants()
    {
        for (std::size_t i = 0; i < plan_.ops.size(); i++) {
            leave_out(i);
            drop_dependencies(i);
            reverse_dependencies(i);
            shorten_dependencies(i);
            change_count(i);
            change_slice(i);
            change_peer(i);
            change_places(i);
            repeat(i);
            swap_with_next(i);
        }
        change_bounce();
        plan_otherwise();
        return std::move(mutants_);
    }

private:
    template <class F> void edit(const char* change, std::size_t i, F f)
    {
        Draft draft(plan_);
        f(draft);
        // A rank that is in a later call has also been in this one.
        const Op::Kind kind = plan_.ops[i].kind;
        const bool only_last = kind == Op::Kind::drain || kind == Op::Kind::enter ||
                               (kind == Op::Kind::announce && equivalence_.has_one_writer());
        mutants_.push_back({change, static_cast<int>(i), draft.plan(), only_last});
    }

    template <class F> void edit_op(const char* change, std::size_t i, F f)
    {
        Op changed = plan_.ops[i];
        f(changed);
        if (equivalence_.is_idle_await(i, changed)) return;
        edit(change, i, [&](Draft& draft) { draft.at(i).op = changed; });
    }

    void leave_out(std::size_t i)
    {
        if (equivalence_.is_idle_await(i, plan_.ops[i])) return;
        if (equivalence_.is_idle_wait(i)) return;
        edit("operation left out", i, [&](Draft& draft) { draft.remove(i); });
    }

    void drop_dependencies(std::size_t i)
    {
        const auto after = plan_.dependencies_of(plan_.ops[i]);
        for (std::size_t d = 0; d < after.size(); d++) {
            if (equivalence_.is_implied(plan_.ops[i], after[d])) continue;
            if (equivalence_.takes_its_turn(plan_.ops[i], after[d])) continue;
            edit("dependency removed", i, [&](Draft& draft) {
                auto& left = draft.at(i).after;
                left.erase(left.begin() + static_cast<std::ptrdiff_t>(d));
            });
        }
    }

    // A plan has no cycles because operations depend only on earlier ones.
    void reverse_dependencies(std::size_t i)
    {
        for (const std::uint32_t on : plan_.dependencies_of(plan_.ops[i])) {
            edit("dependency reversed", i, [&](Draft& draft) {
                std::erase(draft.at(i).after, on);
                draft.at(on).after.push_back(static_cast<std::uint32_t>(i));
            });
        }
    }

    // The operation waits for the dependencies of its dependency.
    void shorten_dependencies(std::size_t i)
    {
        for (const std::uint32_t on : plan_.dependencies_of(plan_.ops[i])) {
            const auto before = plan_.dependencies_of(plan_.ops[on]);
            if (before.empty()) continue;  // the same as a removed dependency
            if (equivalence_.takes_its_turn(plan_.ops[i], on)) continue;
            edit("dependency one step too early", i, [&](Draft& draft) {
                auto& after = draft.at(i).after;
                std::erase(after, on);
                after.insert(after.end(), before.begin(), before.end());
            });
        }
    }

    void change_count(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        if (op.kind == Op::Kind::put) {
            edit_op("put numbered one higher", i, [](Op& o) { o.count++; });
        }
        if (op.kind != Op::Kind::await_data) return;
        edit_op("await lowered", i, [](Op& o) { o.count--; });
        if (!equivalence_.is_high_enough(i)) edit_op("await raised", i, [](Op& o) { o.count++; });
    }

    void change_slice(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        if (op.kind != Op::Kind::put && op.kind != Op::Kind::copy) return;
        const auto shift = [&](const char* change, std::size_t by) {
            edit_op(change, i, [&](Op& o) {
                o.slice.source += by;
                o.slice.target += by;
            });
        };
        shift("slice one byte further", 1);
        shift("slice one byte nearer", std::size_t{0} - 1);
        edit_op("source one byte further", i, [](Op& o) { o.slice.source++; });
        edit_op("target one byte nearer", i, [](Op& o) { o.slice.target--; });
        edit_op("slice one byte shorter", i, [](Op& o) { o.slice.length--; });
        edit_op("slice one byte longer", i, [](Op& o) { o.slice.length++; });
        // Only a peer with a bounce buffer takes the put there.
        const bool is_packed =
            op.kind == Op::Kind::put && op.level == Level::rail && call_.bounce_at(op.peer);
        if (is_packed) edit_op("put packed one byte further", i, [](Op& o) { o.packed++; });
    }

    void change_peer(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        for (int peer = 0; peer < topo_.size() && !equivalence_.is_idle_wait(i); peer++) {
            if (peer == op.peer || equivalence_.is_the_only_peer(op, peer)) continue;
            edit_op("other peer", i, [&](Op& o) { o.peer = peer; });
        }
        edit_op("other level", i,
                [](Op& o) { o.level = o.level == Level::node ? Level::rail : Level::node; });
    }

    void change_places(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        if (op.kind != Op::Kind::put && op.kind != Op::Kind::copy) return;
        for (const Place place : {Place::send, Place::receive, Place::bounce}) {
            if (place != op.from) edit_op("other source", i, [&](Op& o) { o.from = place; });
            if (op.kind == Op::Kind::copy && place != op.to)
                edit_op("other target", i, [&](Op& o) { o.to = place; });
        }
        if (op.kind == Op::Kind::copy)
            edit_op("copied the other way", i, [](Op& o) { std::swap(o.from, o.to); });
    }

    // A peer puts to another place in this rank's bounce buffer; or the buffer is too short.
    void change_bounce()
    {
        const auto change = [&](const char* name, auto f) {
            Draft draft(plan_);
            f(draft);
            mutants_.push_back({name, -1, draft.plan()});
        };
        for (std::size_t i = 0; i < plan_.bounce_places.size(); i++) {
            change("place of a peer one byte further",
                   [&](Draft& draft) { draft.bounce_places[i].offset++; });
        }
        if (plan_.bounce_bytes > 0)
            change("bounce buffer one byte shorter", [](Draft& draft) { draft.bounce_bytes--; });
    }

    void repeat(std::size_t i)
    {
        const Op::Kind kind = plan_.ops[i].kind;
        if (kind != Op::Kind::put && kind != Op::Kind::copy) return;
        edit("done twice", i, [&](Draft& draft) { draft.repeat(i); });
    }

    void swap_with_next(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        if (op.kind != Op::Kind::put || op.level != Level::rail) return;
        for (std::size_t j = i + 1; j < plan_.ops.size(); j++) {
            if (!same_pair(op, plan_.ops[j])) continue;
            edit("numbers of two puts exchanged", i,
                 [&](Draft& draft) { std::swap(draft.at(i).op.count, draft.at(j).op.count); });
            if (equivalence_.is_order_free(op, plan_.ops[j])) return;
            edit("slices of two puts exchanged", i, [&](Draft& draft) {
                std::swap(draft.at(i).op.slice, draft.at(j).op.slice);
                std::swap(draft.at(i).op.from, draft.at(j).op.from);
            });
            return;
        }
    }

    // This rank alone plans with other parameters. If the plan is the same, this is no mutant.
    void plan_otherwise()
    {
        const auto replan = [&](const char* change, const Topology& topology, const Call& other) {
            Plan plan = plan_of(topology, rank_, other);
            if (!equal(plan, plan_)) mutants_.push_back({change, -1, std::move(plan)});
        };
        Call other = call_;
        for (const Route route : all_routes) {
            other.route = route;
            // Equivalent: the bundle of a single rank is its shard.
            const bool is_same =
                topo_.nodes() == topo_.size() && route != Route::ring && call_.route != Route::ring;
            if (route != call_.route && !is_same) replan("planned for another route", topo_, other);
        }
        other = call_;
        other.in_place.flip();
        replan("planned for the other place of the own shard", topo_, other);
        other = call_;
        other.bounce.flip();
        replan("planned for the other reach of the network", topo_, other);
        other = call_;
        other.publish = !other.publish;
        replan("planned for the other way inside a node", topo_, other);
        other = call_;
        for (const std::size_t chunk : {call_.chunk / 2, call_.chunk + 1, call_.chunk * 2}) {
            other.chunk = std::max<std::size_t>(chunk, 1);
            replan("planned for another chunk", topo_, other);
        }
        std::vector<int> all_alone(call_.plans.size());
        std::iota(all_alone.begin(), all_alone.end(), 0);
        if (topo_.nodes() < topo_.size()) {
            replan("planned for one rank a node", Topology(all_alone), call_);
        }
    }

    const Topology& topo_;
    int rank_;
    const Call& call_;
    const Plan& plan_;
    Equivalence equivalence_;
    std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> mutants_of(const Topology& topology, int rank, const Call& call)
{
    return Mutator(topology, rank, call).mutants();
}

}  // namespace hier::model
