// SPDX-License-Identifier: BSD-3-Clause
// Which small calls the cost model publishes inside a node, and that they fit in there.
#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/small_calls.hpp"

namespace {

using namespace hier::test;
using bench::simulator::make_topology;
using hier::AllgatherCost;
using hier::Choice;
using hier::Constraints;
using hier::Route;

// us, on one node with a core for each rank: calls behind a barrier, the mean of the ranks.
void test_measured(void**)
{
    struct {
        int ranks;
        std::size_t bytes;
        double measured;
    } const rows[] = {
        {2, 8, 0.45},    {2, kilo, 0.97},      {2, 4 * kilo, 1.7}, {4, 8, 0.64},    {4, kilo, 1.6},
        {8, 8, 0.95},    {8, kilo, 2.4},       {8, 4 * kilo, 6.1}, {16, 8, 1.6},    {16, 256, 2.5},
        {16, kilo, 4.4}, {16, 4 * kilo, 11.5}, {32, 8, 2.3},       {32, kilo, 7.8},
    };
    for (const auto& row : rows) {
        const Choice choice = choose({row.ranks}, tcp(), row.bytes);
        const double ratio = choice.seconds * 1e6 / row.measured;
        if (ratio < 0.5 || ratio > 2)
            print_error("%d ranks, %zu bytes: %g us, measured %g\n", row.ranks, row.bytes,
                        choice.seconds * 1e6, row.measured);
        assert_true(choice.publish && ratio >= 0.5 && ratio <= 2);
    }
}

bool is_publish(const std::vector<int>& layout, std::size_t bytes, Constraints constraints = {})
{
    constraints.eager_bytes = 32 * kilo;
    return AllgatherCost(make_topology(layout), tcp()).choose(bytes, constraints).publish;
}

// A publish holds the rank's block with its head, and the blocks of other nodes that the rank hands
// on.
void test_what_a_publish_holds(void**)
{
    const std::size_t space = tcp().publish_space, head = tcp().publish_block;
    assert_true(is_publish({4}, tcp().small_bytes));
    assert_false(is_publish({4}, tcp().small_bytes + 1));
    assert_false(is_publish({4}, ~std::size_t{0} / 8));
    assert_false(is_publish({1, 1}, 16));  // no peer on the node
    assert_true(is_publish({8, 1}, 16));
    Constraints direct, bundles;
    direct.route = Route::direct;
    bundles.route = Route::bundles;
    // A rank hands on one block of each other node, or all blocks of one other node.
    assert_true(is_publish({4, 4, 4, 4}, space / 4 - 2 * head, direct));
    assert_false(is_publish({4, 4, 4, 4}, space / 4, direct));
    assert_true(is_publish({4, 4, 4, 4}, space / 5 - 2 * head, bundles));
    assert_false(is_publish({4, 4, 4, 4}, space / 5, bundles));
    // With so many chunks their heads do not fit in.
    direct.chunk = bundles.chunk = 8;
    assert_false(is_publish({4, 4, 4, 4}, space / 8, direct));
    assert_false(is_publish({4, 4, 4, 4}, space / 8, bundles));
}

// The bytes of a rank's blocks in a published call.
std::size_t space_of(const hier::Plan& plan)
{
    std::size_t space = 0;
    for (const hier::Op& op : plan.ops) {
        if (op.kind == hier::Op::Kind::put && op.peer == hier::Op::every_peer)
            space += op.slice.length + tcp().publish_block;
    }
    return space;
}

// Nodes of one size or of several sizes. Their ranks are neighbours, or lie among those of other
// nodes.
hier::Topology any_topology(std::mt19937& random)
{
    const std::size_t nodes = 1 + random() % 5, members = 1 + random() % 5;
    const bool are_equal = random() % 2 == 0;
    std::vector<std::vector<int>> runs;
    for (std::size_t n = 0; n < nodes; n++) {
        const std::size_t ranks = are_equal ? members : 1 + random() % members;
        const std::size_t length = random() % 2 == 0 ? 1 : ranks;
        for (std::size_t r = 0; r < ranks; r += length)
            runs.emplace_back(length, static_cast<int>(n));
    }
    std::shuffle(runs.begin(), runs.end(), random);
    std::vector<int> node_of_rank;
    for (const auto& run : runs) node_of_rank.insert(node_of_rank.end(), run.begin(), run.end());
    return hier::Topology(node_of_rank);
}

// Roughly the most bytes of a published call. 0: not even one byte.
std::size_t largest_publish(const AllgatherCost& cost, const Constraints& constraints)
{
    std::size_t least = 0, most = tcp().publish_space;
    while (least + 1 < most) {
        const std::size_t middle = (least + most) / 2;
        (cost.choose(middle, constraints).publish ? least : most) = middle;
    }
    return least;
}

const char* all_that_is_chosen_fits_in()
{
    std::mt19937 random(1);
    int publishes = 0;
    for (int i = 0; i < 3000; i++) {
        const hier::Topology topology = any_topology(random);
        Constraints constraints;
        constraints.eager_bytes = random() % 2 * 32 * kilo;
        if (random() % 4 != 0) constraints.route = hier::all_routes[random() % 3];
        if (random() % 2 == 0) constraints.chunk = 1 + random() % (random() % 2 == 0 ? 100 : 8192);
        if (random() % 2 == 0) constraints.publish = true;  // larger blocks than small ones
        const AllgatherCost cost(topology, tcp());
        const std::size_t bytes = largest_publish(cost, constraints);
        if (bytes == 0) continue;
        const Choice choice = cost.choose(bytes, constraints);
        publishes++;
        const auto shards = hier::equal_shards(topology.size(), bytes);
        for (int r = 0; r < topology.size(); r++) {
            const auto plan = plan_allgather(topology, r,
                                             {.shards = shards,
                                              .chunk = choice.chunk,
                                              .route = choice.route,
                                              .in_place = false,
                                              .bounce = false,
                                              .eager = choice.eager,
                                              .publish = true});
            if (space_of(plan) <= tcp().publish_space) continue;
            return keep(std::to_string(topology.size()) + " ranks on " +
                        std::to_string(topology.nodes()) + " nodes, " + std::to_string(bytes) +
                        " bytes, " + to_string(choice.route) + ": rank " + std::to_string(r) +
                        " has " + std::to_string(space_of(plan)) + " bytes to put");
        }
    }
    return publishes > 500 ? nullptr : "hardly any is published";
}

void test_a_forced_publish(void**)
{
    hier::Rates rates = tcp();
    rates.small_bytes = 1000;
    const std::vector<int> one_node(4, 0);
    const hier::Topology topology(one_node);
    const AllgatherCost cost(topology, rates);
    const auto is_published = [&](std::size_t bytes, std::optional<bool> publish) {
        Constraints constraints;
        constraints.publish = publish;
        return cost.choose(bytes, constraints).publish;
    };
    assert_true(is_published(1000, std::nullopt) && !is_published(1001, std::nullopt));
    assert_true(!is_published(1000, false) && is_published(1001, true));
    assert_false(is_published(rates.publish_space, true));  // does not fit
}

// Only what is not published whatever its memory. The prediction is that of device memory.
void test_a_publish_of_host_memory(void**)
{
    hier::Rates rates = tcp();
    rates.small_bytes = 1000;
    rates.host_publish_bytes = 2000;
    rates.host_publish_space = 5000;
    const std::vector<int> nodes{0, 0, 1, 1}, alone{0, 1};
    const auto choose = [&](const std::vector<int>& machine, std::size_t bytes) {
        const hier::Topology topology(machine);
        Constraints constraints;
        constraints.route = Route::direct;
        return AllgatherCost(topology, rates).choose(bytes, constraints);
    };
    assert_true(choose(nodes, 1000).publish && !choose(nodes, 1000).host_publishes);
    assert_true(!choose(nodes, 1001).publish && choose(nodes, 1001).host_publishes);
    assert_true(choose(nodes, 2000).host_publishes);
    assert_false(choose(nodes, 2001).host_publishes);
    assert_false(choose(alone, 1001).host_publishes);
    const double seconds = choose(nodes, 1500).seconds;
    rates.host_publish_space = 2999;  // two blocks do not fit in
    assert_false(choose(nodes, 1500).host_publishes);
    assert_true(choose(nodes, 1500).seconds == seconds);
}

void test_all_of_a_publish_fits_in(void**) { expect_no_reason(all_that_is_chosen_fits_in()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_what_a_publish_holds),
        cmocka_unit_test(test_a_forced_publish),
        cmocka_unit_test(test_a_publish_of_host_memory),
        cmocka_unit_test(test_all_of_a_publish_fits_in),
    };
    return hier::test::run_cases(argc, argv, "cost_publish", tests);
}
