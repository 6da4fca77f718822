// SPDX-License-Identifier: BSD-3-Clause
// Plans of ranks whose network reaches only a bounce buffer: the copies to it and from it, and the
// operations that wait for them. Nothing else changes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "hier/plan.hpp"
#include "test/support/machine.hpp"
#include "test/support/team.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

using Check = std::function<std::string(const Team& team, int rank)>;

// Visits every rank with a bounce buffer, on all small machines, by both routes, in place and not.
const char* first_fault(const Check& check)
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        const auto n = static_cast<std::size_t>(ranks);
        std::vector<bool> some(n), all(n, true);
        for (std::size_t r = 1; r < n; r += 2) some[r] = true;
        auto shards = equal_shards(ranks, 7);
        if (ranks > 4) shards[1].length = 0;
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : {Route::direct, Route::ring}) {
                for (const bool in_place : {false, true}) {
                    for (const auto& bounce : {some, all}) {
                        const Team team = team_of(nodes, shards, 3, route, in_place, bounce);
                        for (int r = 0; r < ranks; r++) {
                            if (!bounce[static_cast<std::size_t>(r)]) continue;
                            const std::string fault = check(team, r);
                            if (!fault.empty())
                                return keep(fault + ": rank " + std::to_string(r) +
                                            ", nodes of ranks " + text_of(nodes));
                        }
                    }
                }
            }
        }
    }
    return nullptr;
}

const Plan& plan_of(const Team& team, int rank)
{
    return team.plans[static_cast<std::size_t>(rank)];
}

bool is_own(const Team& team, int rank, const Op& op)
{
    const Extent own = team.shards[static_cast<std::size_t>(rank)];
    return op.slice.target >= own.offset && op.slice.target < own.offset + own.length;
}

bool is_copy(const Op& op, Place from, Place to)
{
    return op.kind == Op::Kind::copy && op.from == from && op.to == to;
}
bool is_stage_in(const Op& op) { return is_copy(op, Place::bounce, Place::receive); }
bool is_stage_out(const Op& op) { return op.kind == Op::Kind::copy && op.to == Place::bounce; }
bool is_put(const Op& op, Level level) { return op.kind == Op::Kind::put && op.level == level; }

// The bytes that an operation moves, by their place in the receive buffers.
Extent home_of(const Team& team, int rank, const Op& op)
{
    if (!is_stage_out(op)) return target_of(op);
    const std::size_t own = team.shards[static_cast<std::size_t>(rank)].offset;
    return {op.slice.source + (op.from == Place::send ? own : 0), op.slice.length};
}

bool less(const Extent& a, const Extent& b)
{
    return std::tie(a.offset, a.length) < std::tie(b.offset, b.length);
}

using Extents = std::vector<Extent>;

Extents extents_of(const Team& team, int rank, const std::function<bool(const Op&)>& is_one)
{
    Extents extents;
    for (const Op& op : plan_of(team, rank).ops) {
        if (is_one(op)) extents.push_back(home_of(team, rank, op));
    }
    std::sort(extents.begin(), extents.end(), less);
    return extents;
}

Extents extents_put_to(const Team& team, int rank)
{
    Extents extents;
    for_each_op(team, Op::Kind::put, [&](int, const Op& op) {
        if (op.level == Level::rail && op.peer == rank) extents.push_back(target_of(op));
    });
    std::sort(extents.begin(), extents.end(), less);
    return extents;
}

Extents own_chunks(const Team& team, int rank)
{
    const Extent own = team.shards[static_cast<std::size_t>(rank)];
    Extents chunks;
    for (std::size_t done = 0; done < own.length; done += team.chunk)
        chunks.push_back({own.offset + done, std::min(team.chunk, own.length - done)});
    return chunks;
}

// ---- bytes

// A rank copies its own shard out once, whatever the number of next hops. It copies in what the
// rail brings.
std::string fault_of_copies(const Team& team, int rank)
{
    const bool has_rail = team.topology.nodes() > 1;
    const Extents own = own_chunks(team, rank);
    if (extents_of(team, rank, is_stage_out) != (has_rail ? own : Extents{}))
        return "not the own shard alone and once is copied to the bounce buffer";
    if (extents_of(team, rank, is_stage_in) != extents_put_to(team, rank))
        return "not each chunk that enters is copied from the bounce buffer once";
    const auto is_from_send = [](const Op& op) { return is_copy(op, Place::send, Place::receive); };
    if (extents_of(team, rank, is_from_send) != (team.in_place ? Extents{} : own))
        return "the own shard is not copied to the receive buffer as ever";
    return "";
}

void test_copies(void**) { expect_no_reason(first_fault(fault_of_copies)); }

bool copies_are(const char* text, Route route, std::size_t out, std::size_t in)
{
    for (const bool in_place : {false, true}) {
        const auto ranks = machine(text).size();
        const Team team = team_of(text, 10, 4, route, in_place, std::vector<bool>(ranks, true));
        for (int r = 0; r < team.topology.size(); r++) {
            if (extents_of(team, r, is_stage_out).size() != out) return false;
            if (extents_of(team, r, is_stage_in).size() != in) return false;
        }
    }
    return true;
}

// Three chunks a shard. Equal nodes: the own chunks, and those of the N-1 others of the rail.
void test_numbers_of_copies(void**)
{
    for (const Route route : {Route::direct, Route::ring}) {
        assert_true(copies_are("1", route, 0, 0));
        assert_true(copies_are("4", route, 0, 0));
        assert_true(copies_are("1,1", route, 3, 3));
        assert_true(copies_are("2,2", route, 3, 3));
        assert_true(copies_are("1,1,1,1", route, 3, 9));
        assert_true(copies_are("3,3,3", route, 3, 6));
    }
}

// ---- places

std::string fault_of_places(const Team& team, int rank)
{
    const Place own = team.in_place ? Place::receive : Place::send;
    for (const Op& op : plan_of(team, rank).ops) {
        if (is_put(op, Level::rail) && op.from != Place::bounce)
            return "a rail put that the network cannot read";
        if (is_put(op, Level::node) && op.from != (is_own(team, rank, op) ? own : Place::receive))
            return "a node put from elsewhere than without a bounce buffer";
        if (is_stage_out(op) && op.from != own) return "the own shard is not where it is read";
        if (op.kind == Op::Kind::copy && (op.level != Level::node || op.peer != rank))
            return "a copy that is not this rank's";
    }
    return "";
}

void test_places(void**) { expect_no_reason(first_fault(fault_of_places)); }

// ---- dependencies

std::string fault_of_dependencies(const Team& team, const Plan& plan, int rank, const Op& op)
{
    const auto kinds_are = [&](const std::function<bool(const Op&)>& first, bool with_ready) {
        const auto after = plan.dependencies_of(op);
        if (after.size() != (with_ready ? 2U : 1U) || !first(plan.ops[after[0]])) return false;
        if (!with_ready) return true;
        const Op& ready = plan.ops[after[1]];
        return ready.kind == Op::Kind::await_announced && ready.level == op.level &&
               ready.peer == op.peer;
    };
    // The put of this slice to this rank tells its sender and its count.
    const auto brings_it = [&](const Op& await) {
        if (await.kind != Op::Kind::await_data || await.level != Level::rail) return false;
        const auto& sender = plan_of(team, await.peer).ops;
        return std::any_of(sender.begin(), sender.end(), [&](const Op& put) {
            return is_put(put, Level::rail) && put.peer == rank &&
                   target_of(put) == target_of(op) && put.count == await.count;
        });
    };
    const auto stages_out = [&](const Op& o) {
        return is_stage_out(o) && home_of(team, rank, o) == target_of(op);
    };
    const auto stages_in = [&](const Op& o) {
        return is_stage_in(o) && target_of(o) == target_of(op);
    };
    const bool own = is_own(team, rank, op);

    if (is_stage_out(op) && op.dependencies > 0) return "the copy of the own shard waits";
    if (is_stage_in(op) && !kinds_are(brings_it, false))
        return "the copy of a chunk does not wait for its arrival alone";
    if (is_put(op, Level::rail) && own && !kinds_are(stages_out, true))
        return "a rail put of the own shard does not wait for its copy and its peer alone";
    if (is_put(op, Level::rail) && !own && !kinds_are(brings_it, true))
        return "a forward does not wait for the arrival and its peer alone";
    if (is_put(op, Level::node) && !own && !kinds_are(stages_in, true))
        return "a node put of a remote chunk does not wait for its copy and its peer alone";
    return "";
}

void test_dependencies(void**)
{
    expect_no_reason(first_fault([](const Team& team, int rank) {
        for (const Op& op : plan_of(team, rank).ops) {
            const auto fault = fault_of_dependencies(team, plan_of(team, rank), rank, op);
            if (!fault.empty()) return fault;
        }
        return std::string();
    }));
}

// ---- order

std::string fault_of_order(const Team& team, int rank)
{
    bool node_has_begun = false;
    const Op* before = nullptr;
    for (const Op& op : plan_of(team, rank).ops) {
        node_has_begun =
            node_has_begun || is_put(op, Level::node) || is_copy(op, Place::send, Place::receive);
        if (is_stage_out(op) && node_has_begun) return "the rail waits for the node";
        if (is_stage_in(op) && before->kind != Op::Kind::await_data)
            return "a copy does not follow on its arrival at once";
        before = &op;
    }
    return "";
}

void test_order(void**) { expect_no_reason(first_fault(fault_of_order)); }

// ---- all else

// Without the copies, and apart from the sources, the plan is that of a rank without a bounce
// buffer. So the peers need not know.
std::string fault_of_the_rest(const Team& team, int rank)
{
    const Plan plain = plan_allgather(team.topology, rank,
                                      {team.shards, team.chunk, team.route, team.in_place, false});
    std::vector<Op> left;
    for (const Op& op : plan_of(team, rank).ops) {
        if (!is_stage_in(op) && !is_stage_out(op)) left.push_back(op);
    }
    const auto same = [](const Op& a, const Op& b) {
        return a.kind == b.kind && a.level == b.level && a.to == b.to && a.peer == b.peer &&
               a.count == b.count && target_of(a) == target_of(b);
    };
    return std::equal(left.begin(), left.end(), plain.ops.begin(), plain.ops.end(), same)
               ? ""
               : "more than the copies is different";
}

void test_rest(void**) { expect_no_reason(first_fault(fault_of_the_rest)); }

bool bounce_is_nowhere()
{
    for (const Route route : {Route::direct, Route::ring}) {
        for (const Plan& plan : team_of("2,3,1", 7, 3, route).plans) {
            for (const Op& op : plan.ops) {
                if (op.from == Place::bounce || op.to == Place::bounce) return false;
            }
        }
    }
    return true;
}

void test_without_bounce_buffers(void**) { assert_true(bounce_is_nowhere()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_numbers_of_copies),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_without_bounce_buffers),
    };
    return hier::test::run_cases(argc, argv, "plan_bounce", tests);
}
