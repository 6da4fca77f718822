// SPDX-License-Identifier: BSD-3-Clause
// The cost model on small calls: eager messages, and the size from which hier replaces the fallback
// module.
#include <cstddef>
#include <string>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/small_calls.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::AllgatherCost;
using hier::Constraints;
using hier::Rates;
using hier::Route;

// us, with a core for each rank and a link of 10 Gbit/s a node: calls between two barriers.
struct Measured {
    std::vector<int> layout;
    std::size_t bytes;
    double direct, bundles;
};

const char* predictions_are_as_measured()
{
    const std::vector<int> n2g4(2, 4), n2g8(2, 8), n4g4(4, 4), n4g8(4, 8), n8g4(8, 4);
    const Measured rows[] = {
        {n2g4, 16, 20.2, 14.3},         {n2g8, 16, 43.8, 18.3},         {n2g8, kilo, 49.2, 28.2},
        {n2g8, 4 * kilo, 79.8, 42.3},   {n4g4, 16, 64.3, 27.5},         {n4g4, kilo, 72.0, 38.5},
        {n4g4, 4 * kilo, 131.4, 50.2},  {n4g4, 8 * kilo, 108.6, 70.4},  {n4g8, 16, 159.1, 35.7},
        {n4g8, kilo, 162.7, 48.5},      {n4g8, 4 * kilo, 264.5, 86.7},  {n8g4, 16, 162.5, 66.0},
        {n8g4, 4 * kilo, 378.9, 105.4}, {n8g4, 8 * kilo, 274.2, 158.4}, {n2g4, 16 * kilo, 47, 68},
        {n2g8, 16 * kilo, 94.5, 140},   {n8g4, 16 * kilo, 362, 410},
    };
    for (const Measured& row : rows) {
        const AllgatherCost cost(make_topology(row.layout), tcp());
        const std::string what = std::to_string(row.layout.size()) + " nodes of " +
                                 std::to_string(row.layout[0]) + ", " + std::to_string(row.bytes) +
                                 " bytes";
        const Route faster = row.direct < row.bundles ? Route::direct : Route::bundles;
        if (choose(row.layout, tcp(), row.bytes).route != faster)
            return keep(what + ": not the faster one");
        for (const Route route : {Route::direct, Route::bundles}) {
            const double measured = route == Route::direct ? row.direct : row.bundles;
            Constraints constraints;
            constraints.route = route;
            constraints.eager_bytes = 32 * kilo;
            const double ratio = cost.choose(row.bytes, constraints).seconds * 1e6 / measured;
            if (ratio < 0.5 || ratio > 2)
                return keep(what + ": predicted " + std::to_string(ratio) + " of the time");
        }
    }
    return nullptr;
}

void test_measured(void**) { expect_no_reason(predictions_are_as_measured()); }

// The bytes that wait at a receiver outside the call are bounded.
void test_a_large_bundle_is_not_eager(void**)
{
    Constraints constraints;
    constraints.eager_bytes = 32 * kilo;
    const AllgatherCost cost(make_topology({8, 8}), tcp());
    for (const Route route : {Route::direct, Route::bundles}) {
        constraints.route = route;
        assert_true(cost.choose(4 * kilo, constraints).eager);
        assert_int_equal(cost.choose(4 * kilo + 1, constraints).eager, route == Route::direct);
        assert_false(cost.choose(32 * kilo + 1, constraints).eager);
    }
    assert_false(AllgatherCost(make_topology({8}), tcp()).choose(16, constraints).eager);
    // The largest bundle decides.
    constraints.route = Route::bundles;
    const AllgatherCost uneven(make_topology({2, 8}), tcp());
    assert_true(uneven.choose(4 * kilo, constraints).eager);
    assert_false(uneven.choose(4 * kilo + 1, constraints).eager);
}

void test_eager_saves_the_handshake(void**)
{
    for (const Route route : hier::all_routes) {
        Constraints constraints;
        constraints.route = route;
        const AllgatherCost cost(make_topology({2, 2, 2}), rdma());
        const double with = cost.choose(100, constraints).seconds;
        constraints.eager_bytes = 32 * kilo;
        // The handshake of bundles hides behind their gathering.
        const double saved = route == Route::bundles ? 0 : rdma().nic_latency;
        assert_true(cost.choose(100, constraints).seconds < with - saved);
    }
}

// Times of Open MPI 4.1.6's tuned in us, measured with a core for each rank.
void test_fallback_module(void**)
{
    struct {
        std::vector<int> layout;
        std::size_t bytes;
        double measured;
    } const rows[] = {
        {{2}, 16, 0.7},         {{4}, 16, 1.6},           {{4}, 4 * kilo, 8.8},
        {{32}, 16, 5.6},        {{8}, kilo, 9.3},         {{8}, 16, 2.9},
        {{8}, 4 * kilo, 15.1},  {{8}, 16 * kilo, 31.7},   {{16}, 16, 4.1},
        {{16}, 4 * kilo, 33.6}, {{4, 4, 4, 4}, 16, 62.3}, {{4, 4, 4, 4}, kilo, 92},
        {{8, 8}, 16, 68},       {{8, 8}, kilo, 102},
    };
    for (const auto& row : rows) {
        const double us = AllgatherCost(make_topology(row.layout), tcp()).fallback(row.bytes) * 1e6;
        if (us < row.measured / 2 || us > row.measured * 2)
            print_error("%zu ranks on a node, %zu bytes: %g us, measured %g\n",
                        static_cast<std::size_t>(row.layout[0]), row.bytes, us, row.measured);
        assert_true(us >= row.measured / 2 && us <= row.measured * 2);
    }
}

bool is_ours(const std::vector<int>& layout, const Rates& rates, std::size_t bytes)
{
    const AllgatherCost cost(make_topology(layout), rates);
    return choose(layout, rates, bytes).seconds <= cost.fallback(bytes);
}

void test_whose_call_it_is(void**)
{
    const std::vector<int> node = {8}, nodes(4, 4);
    assert_true(is_ours({2}, tcp(), 16));        // 0.4 to 0.6 us against 0.4 to 0.6
    assert_true(is_ours({2}, tcp(), kilo));      // 0.8 to 1.1 against 1.2 to 1.4
    assert_true(is_ours({2}, tcp(), 4 * kilo));  // 1.6 to 1.8 against 2.9 to 3.2
    assert_true(is_ours({4}, tcp(), 16));        // 0.6 against 1.2
    assert_true(is_ours(node, tcp(), 16));       // 0.9 us against 1.9
    assert_true(is_ours({16}, tcp(), 16));       // 1.3 against 2.9
    assert_true(is_ours({32}, tcp(), 16));       // 2.9 against 5.5
    assert_true(is_ours({64}, tcp(), 16));       // not measured
    // Ranks that share cores: a call does not end in its start.
    Rates shared = tcp();
    shared.shares_cores = true;
    assert_false(is_ours({2}, shared, 16));
    assert_true(is_ours(nodes, tcp(), 16));  // 27 against 48
    // Without space for a publish.
    Rates cells = tcp();
    cells.publish_space = 0;
    assert_false(is_ours(node, cells, 16));  // 5.2 us
    assert_true(is_ours(node, cells, 2 * kilo));
    // The fallback module has to copy GPU memory to the host.
    Rates gpus = tcp();
    gpus.detour = 20e-6;
    assert_true(is_ours(node, gpus, 16));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_a_large_bundle_is_not_eager),
        cmocka_unit_test(test_eager_saves_the_handshake),
        cmocka_unit_test(test_fallback_module),
        cmocka_unit_test(test_whose_call_it_is),
    };
    return hier::test::run_cases(argc, argv, "cost_small", tests);
}
