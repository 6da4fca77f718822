// SPDX-License-Identifier: BSD-3-Clause
#include "mutants.hpp"

#include <algorithm>
#include <numeric>

#include "draft.hpp"

namespace hier::model {
namespace {

// Left out are the changes that change nothing; each place says why.
class Mutator {
public:
    Mutator(const Topology& topology, int rank, const Call& call)
        : topo_(topology), rank_(rank), call_(call), plan_(call.plan(rank)),
          depended_(depended_on(plan_))
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
        plan_otherwise();
        return std::move(mutants_);
    }

private:
    template <class F> void edit(const char* change, std::size_t i, F f)
    {
        Draft draft(plan_);
        f(draft);
        // A rank that is in a later call has been in this one, too.
        const Op::Kind kind = plan_.ops[i].kind;
        const bool only_last = kind == Op::Kind::drain || kind == Op::Kind::enter;
        mutants_.push_back({change, static_cast<int>(i), draft.plan(), only_last});
    }

    template <class F> void edit_op(const char* change, std::size_t i, F f)
    {
        Op changed = plan_.ops[i];
        f(changed);
        if (is_idle_await(i, changed)) return;
        edit(change, i, [&](Draft& draft) { draft.at(i).op = changed; });
    }

    static bool same_pair(const Op& a, const Op& b)
    {
        return a.kind == b.kind && a.level == b.level && a.peer == b.peer;
    }

    bool is_awaited_elsewhere(std::size_t i, const Op& op) const
    {
        for (std::size_t j = 0; j < plan_.ops.size(); j++) {
            if (j != i && same_pair(op, plan_.ops[j]) && plan_.ops[j].count >= op.count)
                return true;
        }
        return false;
    }

    // Equivalent: an await on which nothing depends becomes another one, and the plan has others
    // that wait for at least as much as either. The rank returns only when those are done, and by
    // then these would be, too.
    bool is_idle_await(std::size_t i, const Op& changed) const
    {
        const Op& op = plan_.ops[i];
        return op.kind == Op::Kind::await_data && !depended_[i] && is_awaited_elsewhere(i, op) &&
               is_awaited_elsewhere(i, changed);
    }

    void leave_out(std::size_t i)
    {
        if (is_idle_await(i, plan_.ops[i])) return;
        if (is_idle_wait(i)) return;
        edit("operation left out", i, [&](Draft& draft) { draft.remove(i); });
    }

    // Equivalent: a wait for a peer to come into the call after which nothing follows; in a call in
    // which nobody announces, if the plan waits for data of that peer, too.
    bool is_idle_wait(std::size_t i) const
    {
        const Op& op = plan_.ops[i];
        if (!awaits_peer(op.kind) || depended_[i]) return false;
        return op.kind == Op::Kind::await_announced ||
               std::any_of(plan_.ops.begin(), plan_.ops.end(), [&](const Op& o) {
                   return o.kind == Op::Kind::await_data && o.level == op.level &&
                          o.peer == op.peer;
               });
    }

    // Equivalent: put n of a rail pair is not issued before put n-1, and that one has a
    // dependency which implies this one: the same operation, or an await of at least as many puts
    // of the same pair.
    bool is_implied(const Op& op, std::uint32_t dependency) const
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

    void drop_dependencies(std::size_t i)
    {
        const auto after = plan_.dependencies_of(plan_.ops[i]);
        for (std::size_t d = 0; d < after.size(); d++) {
            if (is_implied(plan_.ops[i], after[d])) continue;
            edit("dependency removed", i, [&](Draft& draft) {
                auto& left = draft.at(i).after;
                left.erase(left.begin() + static_cast<std::ptrdiff_t>(d));
            });
        }
    }

    // Legal only on earlier operations: that is what makes a plan free of cycles.
    void reverse_dependencies(std::size_t i)
    {
        for (const std::uint32_t on : plan_.dependencies_of(plan_.ops[i])) {
            edit("dependency reversed", i, [&](Draft& draft) {
                std::erase(draft.at(i).after, on);
                draft.at(on).after.push_back(static_cast<std::uint32_t>(i));
            });
        }
    }

    // After what the dependency itself waits for.
    void shorten_dependencies(std::size_t i)
    {
        for (const std::uint32_t on : plan_.dependencies_of(plan_.ops[i])) {
            const auto before = plan_.dependencies_of(plan_.ops[on]);
            if (before.empty()) continue;  // that is removing it
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
        // Equivalent: a leader that waits for more than its node's shards, which comes anyhow.
        if (op.level == Level::node && depended_[i] && op.count < node_puts_of(op.peer)) return;
        edit_op("await raised", i, [](Op& o) { o.count++; });
    }

    // To this rank.
    std::uint32_t node_puts_of(int peer) const
    {
        const auto& ops = call_.plan(peer).ops;
        return static_cast<std::uint32_t>(std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
            return op.kind == Op::Kind::put && op.level == Level::node &&
                   (op.peer == rank_ || op.peer == Op::every_peer);
        }));
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
    }

    void change_peer(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        for (int peer = 0; peer < topo_.size() && !is_idle_wait(i); peer++) {
            if (peer == op.peer) continue;
            // Equivalent: all others of a node of two is the other one.
            const auto node = topo_.ranks_on(topo_.node_of(rank_));
            if (op.peer == Op::every_peer && node.size() == 2 && peer != rank_ &&
                topo_.node_of(peer) == topo_.node_of(rank_)) {
                continue;
            }
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

    void repeat(std::size_t i)
    {
        const Op::Kind kind = plan_.ops[i].kind;
        if (kind != Op::Kind::put && kind != Op::Kind::copy) return;
        edit("done twice", i, [&](Draft& draft) { draft.repeat(i); });
    }

    // Equivalent: the receiver does nothing between the arrivals of these two, and when the sender
    // had the first where the rail reads it, it had the second.
    bool is_order_free(const Op& first, const Op& second) const
    {
        const auto had = plan_.dependencies_of(first);
        for (const std::uint32_t d : plan_.dependencies_of(second))
            if (std::find(had.begin(), had.end(), d) == had.end()) return false;
        const Plan& receiver = call_.plan(first.peer);
        const auto depended = depended_on(receiver);
        for (std::size_t i = 0; i < receiver.ops.size(); i++) {
            const Op& op = receiver.ops[i];
            const bool between = op.kind == Op::Kind::await_data && op.level == Level::rail &&
                                 op.peer == rank_ && op.count >= first.count &&
                                 op.count < second.count;
            if (between && depended[i]) return false;
        }
        return true;
    }

    void swap_with_next(std::size_t i)
    {
        const Op& op = plan_.ops[i];
        if (op.kind != Op::Kind::put || op.level != Level::rail) return;
        for (std::size_t j = i + 1; j < plan_.ops.size(); j++) {
            if (!same_pair(op, plan_.ops[j])) continue;
            edit("numbers of two puts exchanged", i,
                 [&](Draft& draft) { std::swap(draft.at(i).op.count, draft.at(j).op.count); });
            if (is_order_free(op, plan_.ops[j])) return;
            edit("slices of two puts exchanged", i, [&](Draft& draft) {
                std::swap(draft.at(i).op.slice, draft.at(j).op.slice);
                std::swap(draft.at(i).op.from, draft.at(j).op.from);
            });
            return;
        }
    }

    // This rank alone plans with other parameters. Equivalent where the plan comes out the same.
    void plan_otherwise()
    {
        const auto replan = [&](const char* change, const Topology& topology, const Call& other) {
            Plan plan = plan_of(topology, rank_, other);
            if (!equal(plan, plan_)) mutants_.push_back({change, -1, std::move(plan)});
        };
        Call other = call_;
        for (const Route route : all_routes) {
            other.route = route;
            // Equivalent: what one rank bundles is its shard.
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
    std::vector<bool> depended_;
    std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> mutants_of(const Topology& topology, int rank, const Call& call)
{
    return Mutator(topology, rank, call).mutants();
}

}  // namespace hier::model
