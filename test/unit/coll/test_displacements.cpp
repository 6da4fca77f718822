// SPDX-License-Identifier: BSD-3-Clause
// Where blocks lie in a buffer, and which plans stay right when they do not lie at home.
#include <random>
#include <string>
#include <vector>

#include "coll/allgather/allgather.hpp"
#include "hier/block_homes.hpp"
#include "test/support/machine.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

void test_places(void**)
{
    const std::size_t displacements[] = {100, 7, 40, 0};
    const BlockHomes equal({}, 10);
    assert_int_equal(equal.displaced(0, displacements), 100);
    assert_int_equal(equal.displaced(9, displacements), 109);
    assert_int_equal(equal.displaced(10, displacements), 7);
    assert_int_equal(equal.displaced(39, displacements), 9);
    // An empty block begins where the next one does.
    const std::vector<Extent> blocks = {{5, 3}, {8, 0}, {8, 4}, {12, 1}};
    const BlockHomes different(blocks, 0);
    assert_int_equal(different.displaced(5, displacements), 100);
    assert_int_equal(different.displaced(7, displacements), 102);
    assert_int_equal(different.displaced(8, displacements), 40);
    assert_int_equal(different.displaced(11, displacements), 43);
    assert_int_equal(different.displaced(12, displacements), 0);
}

Rates some_rates()
{
    Rates rates;
    rates.nic = 10e9;
    rates.link = 10e9;
    rates.own = 10e9;
    rates.publish_space = 32 << 10;
    return rates;
}

// With displacements each operation must move bytes of one block, and on the rail of the own block.
std::string fault_of(const Plan& plan, const BlockHomes& homes, std::size_t rank)
{
    for (const Op& op : plan.ops) {
        if (op.kind != Op::Kind::put && op.kind != Op::Kind::copy) continue;
        const std::size_t home = op.slice.target;
        const std::size_t block = homes.block_at(home);
        if (homes.block_at(home + op.slice.length - 1) != block)
            return "an operation moves bytes of two blocks";
        if (op.level == Level::rail && block != rank) return "a put of another rank's block";
    }
    return "";
}

std::vector<Extent> different_blocks(int ranks, std::size_t most)
{
    std::mt19937_64 random(most);
    std::vector<Extent> blocks;
    std::size_t end = 0;
    for (int rank = 0; rank < ranks; rank++) {
        blocks.push_back({end, rank == 0 ? most : random() % most});
        end += blocks.back().length;
    }
    return blocks;
}

// How many of the plans of such calls may have displacements.
int plans_of(const char* nodes, std::optional<Route> route, bool are_equal)
{
    const Topology topology(machine(nodes));
    const Allgather allgather(topology, some_rates());
    int allowed = 0;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{70001},
                                    std::size_t{3} << 20, std::size_t{200} << 20}) {
        Constraints constraints;
        constraints.max_count = 1 << 20;
        constraints.route = route;
        constraints.eager_bytes = 8192;
        const Choice choice = allgather.choose(bytes, constraints);
        if (!allgather.takes_displacements(choice, are_equal)) continue;
        allowed++;
        const std::vector<Extent> blocks =
            are_equal ? std::vector<Extent>{} : different_blocks(topology.size(), bytes);
        for (int rank = 0; rank < topology.size(); rank++) {
            const Plan plan = allgather.plan({.rank = rank,
                                              .bytes = bytes,
                                              .stride = bytes,
                                              .blocks = blocks,
                                              .choice = choice,
                                              .publishes = choice.publish});
            expect_no_reason(
                keep(fault_of(plan, BlockHomes(blocks, bytes), static_cast<std::size_t>(rank))));
        }
    }
    return allowed;
}

// Nobody announces in published and eager calls. Whoever reads a published block knows its own places.
void test_calls_without_announcements(void**)
{
    constexpr Choice direct{.route = Route::direct},
        published{.route = Route::direct, .publish = true},
        eager{.route = Route::direct, .eager = true};
    const Topology node(machine("3")), nodes(machine("2,2"));
    const Allgather on_one(node, some_rates()), on_two(nodes, some_rates());
    for (const bool are_equal : {true, false}) {
        assert_true(on_one.takes_displacements(direct, are_equal));
        assert_true(on_one.takes_displacements(published, are_equal));
        assert_false(on_one.takes_displacements(eager, are_equal));
        assert_int_equal(on_two.takes_displacements(direct, are_equal), are_equal);
        assert_false(on_two.takes_displacements(published, are_equal));
        assert_false(on_two.takes_displacements(eager, are_equal));
    }
}

void test_plans(void**)
{
    for (const char* nodes : {"3", "8"}) {
        assert_in_range(plans_of(nodes, {}, true), 1, 5);
        assert_in_range(plans_of(nodes, {}, false), 1, 5);
    }
    for (const char* nodes : {"2,2", "3,1", "1,1,1", "0 1 0 2 1"}) {
        assert_in_range(plans_of(nodes, Route::direct, true), 1, 5);
        assert_int_equal(plans_of(nodes, Route::direct, false), 0);
        assert_int_equal(plans_of(nodes, Route::ring, true), 0);
        assert_int_equal(plans_of(nodes, Route::bundles, true), 0);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_calls_without_announcements),
        cmocka_unit_test(test_plans),
    };
    return hier::test::run_cases(argc, argv, "displacements", tests);
}
