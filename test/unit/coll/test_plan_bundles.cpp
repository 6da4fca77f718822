// SPDX-License-Identifier: BSD-3-Clause
// Bundles: few messages between nodes, leaders wait for the data that they send, and eager calls
// have no handshake. The model shows that the plans are right.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "hier/plan.hpp"
#include "test/support/machine.hpp"
#include "test/support/team.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t whole = 1000;  // a chunk that holds any bundle here

std::size_t max_messages_of_a_rank(const Team& team)
{
    std::size_t most = 0;
    for (int r = 0; r < team.topology.size(); r++)
        most = std::max(most, count(team, Op::Kind::put, Level::rail, r));
    return most;
}

std::size_t messages_of_node(const Team& team, int node)
{
    std::size_t messages = 0;
    for (const int r : team.topology.ranks_on(node))
        messages += count(team, Op::Kind::put, Level::rail, r);
    return messages;
}

// One message goes from each node to each other node, whatever their ranks. The ranks share the
// messages.
void test_messages(void**)
{
    struct {
        const char* nodes;
        std::size_t of_node, of_rank;
    } const cases[] = {{"2,2", 1, 1}, {"4,4,4,4", 3, 1}, {"2,2,2,2,2", 4, 2}, {"1,1,1", 2, 2},
                       {"8,8", 1, 1}, {"4,1,2", 2, 2},   {"3,3,3,3,3", 4, 2}, {"5", 0, 0}};
    for (const auto& c : cases) {
        const Team team = team_of(c.nodes, 5, whole, Route::bundles);
        for (int n = 0; n < team.topology.nodes(); n++)
            assert_int_equal(messages_of_node(team, n), c.of_node);
        assert_int_equal(max_messages_of_a_rank(team), c.of_rank);
    }
}

// Shards that do not lie side by side in the buffer go as messages of their own.
void test_strewn_ranks(void**)
{
    const std::vector<int> cyclic = {0, 1, 0, 1, 0, 1};
    const Team team = team_of(cyclic, equal_shards(6, 5), whole, Route::bundles);
    assert_int_equal(messages_of_node(team, 0), 3);
    const std::vector<int> pairs = {0, 0, 1, 1, 0, 0, 1, 1};
    const Team two = team_of(pairs, equal_shards(8, 5), whole, Route::bundles);
    assert_int_equal(messages_of_node(two, 0), 2);
}

bool depends_on(const Plan& plan, const Op& op, Op::Kind kind, Level level, int peer)
{
    const auto after = plan.dependencies_of(op);
    return std::any_of(after.begin(), after.end(), [&](std::uint32_t d) {
        const Op& other = plan.ops[d];
        return other.kind == kind && other.level == level && other.peer == peer;
    });
}

void test_leader_waits_for_its_node(void**)
{
    const Team team = team_of("3,3", 5, whole, Route::bundles);
    const Plan& plan = team.plans[0];  // leads node 0 to node 1
    int bundles = 0;
    for (const Op& op : plan.ops) {
        if (op.kind != Op::Kind::put || op.level != Level::rail) continue;
        bundles++;
        assert_int_equal(op.slice.length, 15);
        for (const int peer : {1, 2})
            assert_true(depends_on(plan, op, Op::Kind::await_data, Level::node, peer));
        assert_true(depends_on(plan, op, Op::Kind::copy, Level::node, 0));
    }
    assert_int_equal(bundles, 1);
}

// A leader takes the first puts of a rank for the shard of that rank.
void test_shards_come_before_bundles(void**)
{
    const Team team = team_of("2,2,2", 5, whole, Route::bundles);
    int pushes = 0;
    for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
        const bool is_own = op.slice.target == team.shards[static_cast<std::size_t>(r)].offset;
        if (op.level != Level::node || is_own) return;
        pushes++;
        const Plan& plan = team.plans[static_cast<std::size_t>(r)];
        assert_true(depends_on(plan, op, Op::Kind::put, Level::node, op.peer));
    });
    assert_int_equal(pushes, 6);  // two bundles enter each node
}

// A rank that is alone on its node waits for nobody.
void test_single_ranks_send_at_once(void**)
{
    const Team team = team_of("1,1,1", 5, whole, Route::bundles);
    for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
        const Plan& plan = team.plans[static_cast<std::size_t>(r)];
        for (const std::uint32_t d : plan.dependencies_of(op))
            assert_int_equal(plan.ops[d].kind, Op::Kind::await_announced);
    });
}

// Between nodes nothing is announced, and no put waits for its receiver. A rank that waits for data
// also waits for its sender.
void test_eager_calls_have_no_handshake(void**)
{
    for (const Route route : all_routes) {
        const Topology topology(machine("2,2,1"));
        const auto shards = equal_shards(topology.size(), 5);
        for (int r = 0; r < topology.size(); r++) {
            AllgatherShape shape{shards, whole, route, true, false};
            shape.eager = true;
            const Plan plan = plan_allgather(topology, r, shape);
            for (const Op& op : plan.ops) {
                if (op.level != Level::rail) continue;
                assert_true(op.kind != Op::Kind::announce);
                if (op.kind == Op::Kind::put)
                    for (const std::uint32_t d : plan.dependencies_of(op))
                        assert_false(awaits_peer(plan.ops[d].kind));
                if (op.kind != Op::Kind::await_data) continue;
                const bool is_known =
                    std::any_of(plan.ops.begin(), plan.ops.end(), [&](const Op& o) {
                        return o.kind == Op::Kind::await_entered && o.level == Level::rail &&
                               o.peer == op.peer;
                    });
                assert_true(is_known);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_strewn_ranks),
        cmocka_unit_test(test_leader_waits_for_its_node),
        cmocka_unit_test(test_shards_come_before_bundles),
        cmocka_unit_test(test_single_ranks_send_at_once),
        cmocka_unit_test(test_eager_calls_have_no_handshake),
    };
    return hier::test::run_cases(argc, argv, "plan_bundles", tests);
}
