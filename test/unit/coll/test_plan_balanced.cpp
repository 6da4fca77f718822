// SPDX-License-Identifier: BSD-3-Clause
// Balanced plans: the order of the turns, and what they wait for. The model shows that plans are
// right, but it does not care whether ranks begin together.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "coll/allgather/spread.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr int ranks = 4;
constexpr SpreadCosts costs{.unit = 1, .start = 40, .put = 0, .grain = 1, .by_cores = false};
const Topology node(std::vector<int>(ranks, 0));

std::vector<Extent> shards_of(const std::vector<std::size_t>& lengths)
{
    std::vector<Extent> shards;
    std::size_t end = 0;
    for (const std::size_t length : lengths) {
        shards.push_back({end, length});
        end += length;
    }
    return shards;
}

Plan plan_of(int rank, const std::vector<Extent>& shards)
{
    return plan_allgather(node, rank,
                          {.shards = shards,
                           .chunk = 1000,
                           .route = Route::direct,
                           .in_place = true,
                           .bounce = false,
                           .own_whole = true,
                           .spread = costs});
}

// The ranks whose first put an operation waits for.
std::set<int> first_puts_before(const Plan& plan, const Op& op)
{
    std::set<int> peers;
    for (const std::uint32_t d : plan.dependencies_of(op)) {
        const Op& before = plan.ops[d];
        if (before.kind == Op::Kind::await_data && before.count == 1) peers.insert(before.peer);
    }
    return peers;
}

// Ranks 2 and 3 hand over: 2 to 1, and 3 to 0.
const std::vector<std::size_t> growing = {100, 200, 300, 400};
const std::vector<int> turns = {3, 0, 2, 1};
const int carrier_of[ranks] = {-1, -1, 1, 0};

std::string fault_of_turns(int rank)
{
    const Plan plan = plan_of(rank, shards_of(growing));
    const auto me = std::find(turns.begin(), turns.end(), rank) - turns.begin();
    std::set<int> owners = {2, 3};
    owners.erase(rank);
    std::vector<int> order;  // of the peers
    for (const Op& op : plan.ops) {
        if (op.kind != Op::Kind::put) continue;
        const bool is_first = op.count == 1 && carrier_of[rank] >= 0;
        if (is_first && (op.slice.length == 0) != (op.peer != carrier_of[rank]))
            return "a part for a rank that carries nothing, or none for the carrier";
        if (is_first) continue;
        if (first_puts_before(plan, op) != owners) return "a push that does not wait for all parts";
        if (order.empty() || order.back() != op.peer) order.push_back(op.peer);
    }
    std::vector<int> wanted;
    for (int step = 1; step < ranks; step++)
        wanted.push_back(turns[static_cast<std::size_t>((me + step) % ranks)]);
    return order == wanted ? "" : "another order of turns";
}

void test_turns(void**)
{
    const auto shards = shards_of(growing);
    const AllgatherSpread spread(node, shards, costs);
    assert_true(std::vector<int>(spread.turns().begin(), spread.turns().end()) == turns);
    for (int rank = 0; rank < ranks; rank++) expect_no_reason(keep(fault_of_turns(rank)));
}

// An owner tells the others when its parts have gone.
void test_empty_puts(void**)
{
    const Plan plan = plan_of(3, shards_of(growing));
    int told = 0;
    for (const Op& op : plan.ops) {
        if (op.kind != Op::Kind::put || op.slice.length > 0) continue;
        assert_int_not_equal(op.peer, carrier_of[3]);
        const auto before = plan.dependencies_of(op);
        assert_true(std::any_of(before.begin(), before.end(), [&](std::uint32_t d) {
            return plan.ops[d].kind == Op::Kind::put && plan.ops[d].peer == carrier_of[3];
        }));
        told++;
    }
    assert_int_equal(told, 2);
}

// A carrier that stands before the owner has nothing for it, and would be ahead.
void test_nobody_is_ahead(void**)
{
    const auto shards = shards_of({0, 400, 0, 0});
    assert_int_equal(AllgatherSpread(node, shards, costs).turns().size(), ranks);
    int waits = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const Plan plan = plan_of(rank, shards);
        for (const Op& op : plan.ops) {
            if (op.kind != Op::Kind::put || op.slice.length == 0) continue;
            for (const std::uint32_t d : plan.dependencies_of(op)) {
                const Op& before = plan.ops[d];
                const bool is_of_a_carrier =
                    before.kind == Op::Kind::await_data && before.peer != 1;
                waits += is_of_a_carrier ? 1 : 0;
            }
        }
    }
    assert_true(waits > 0);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_empty_puts),
        cmocka_unit_test(test_nobody_is_ahead),
    };
    return hier::test::run_cases(argc, argv, "plan_balanced", tests);
}
