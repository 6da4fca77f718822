// SPDX-License-Identifier: BSD-3-Clause
// When the cost model takes bundles, and how well it predicts their time.
#include <cmath>
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
using hier::Choice;
using hier::Constraints;
using hier::Rates;
using hier::Route;

// Bundles pay if messages cost more than their bytes and more than one hop.
void test_bundles_are_for_many_small_messages(void**)
{
    const std::vector<int> many(64, 8), alone(64, 1);
    assert_true(choose(many, rdma(), 16).route == Route::bundles);
    assert_true(choose(many, rdma(), 16, false).route != Route::bundles);
    assert_true(choose({4, 4}, rdma(), 16).route != Route::bundles);
    assert_true(choose(alone, rdma(), 16).route != Route::bundles);
    // All shards of a node go through one of its eight NICs.
    assert_true(choose({8, 8}, rdma(), 64 * kilo).route != Route::bundles);
}

Choice choose_on_gpus(const Options& options, std::size_t bytes, Constraints constraints = {})
{
    constraints.eager_bytes = options.machine.eager_bytes;
    return AllgatherCost(make_topology(options.layout), small_rates_of(options.machine))
        .choose(bytes, constraints);
}

// Plans in virtual time. The choice takes at most a fifth more than direct puts or a ring, and at
// most a quarter more than bundles. The hops of bundles have to be worth their cost.
const char* gpus_take_the_fastest_route(double stage_rate)
{
    for (const int nodes : {2, 3, 4, 8, 16, 64}) {
        for (const int ranks : {1, 2, 8}) {
            Options options;
            options.layout = std::vector<int>(static_cast<std::size_t>(nodes), ranks);
            options.machine.stage_rate = stage_rate;
            const auto topology = make_topology(options.layout);
            const auto seconds = [&](const Choice& choice, std::size_t bytes) {
                return run_hier(topology, options, bytes, choice).seconds;
            };
            for (std::size_t bytes = 4 * kilo; bytes <= 4096 * kilo; bytes *= 2) {
                const double chosen = seconds(choose_on_gpus(options, bytes), bytes);
                for (const Route route : hier::all_routes) {
                    Constraints constraints;
                    constraints.route = route;
                    const double other =
                        seconds(choose_on_gpus(options, bytes, constraints), bytes);
                    if (chosen > (route == Route::bundles ? 1.25 : 1.2) * other)
                        return keep(std::to_string(nodes) + " nodes of " + std::to_string(ranks) +
                                    ", " + std::to_string(bytes) +
                                    " bytes: " + std::to_string(chosen * 1e6) + " us, " +
                                    to_string(route) + " " + std::to_string(other * 1e6));
                }
            }
        }
    }
    return nullptr;
}

void test_gpus(void**)
{
    expect_no_reason(gpus_take_the_fastest_route(0));
    expect_no_reason(gpus_take_the_fastest_route(25e9));
}

// Copy engines hand on a bundle as fast as one of its blocks. Cores pay for its bytes. Over TCP
// large bundles were slow.
void test_bundles_with_a_handshake_are_for_copy_engines(void**)
{
    Options options;
    options.layout = std::vector<int>(64, 8);
    assert_true(choose_on_gpus(options, 32 * kilo).route == Route::bundles);
    assert_false(choose_on_gpus(options, 32 * kilo).eager);
    assert_true(choose_on_gpus(options, 2048 * kilo).route != Route::bundles);
    Options staged = options;
    staged.machine.stage_rate = 25e9;
    assert_true(choose_on_gpus(staged, 32 * kilo).route == Route::bundles);
    // On one node nobody needs a bundle.
    Options one_node = options;
    one_node.layout = {2};
    one_node.machine.nic_latency = 0;
    for (std::size_t bytes = 1; bytes < 4096 * kilo; bytes *= 4)
        assert_true(choose_on_gpus(one_node, bytes).route != Route::bundles);
    // A bundle that is cut needs as many copies as its blocks.
    Constraints cut;
    cut.chunk = 32 * kilo;
    assert_true(choose_on_gpus(options, 32 * kilo, cut).route != Route::bundles);
    cut.chunk = 8 * 32 * kilo;
    assert_true(choose_on_gpus(options, 32 * kilo, cut).route == Route::bundles);
    // If neighbouring ranks are on different nodes, a bundle is several messages.
    std::vector<int> node_of_rank;
    for (int r = 0; r < 512; r++) node_of_rank.push_back(r / 2 % 64);
    const AllgatherCost strewn(hier::Topology(node_of_rank), small_rates_of(options.machine));
    assert_true(strewn.choose(32 * kilo).route != Route::bundles);
    Options tcp_options = options, host = options;
    tcp_options.machine.nic_gap = 5.5e-6;
    host.machine.is_host = true;
    assert_true(choose_on_gpus(tcp_options, 32 * kilo).route != Route::bundles);
    assert_true(choose_on_gpus(host, 32 * kilo).route != Route::bundles);
}

void test_a_bundle_is_one_chunk(void**)
{
    assert_int_equal(choose(std::vector<int>(4, 4), tcp(), 100).chunk, 400);
    Constraints constraints;
    constraints.route = Route::bundles;
    constraints.chunk = 4096;
    const AllgatherCost cost(make_topology({4, 4}), tcp());
    assert_int_equal(cost.choose(8 * kilo, constraints).chunk, 4096);
    assert_int_equal(cost.choose(100, constraints).chunk, 400);
}

// Ranks without neighbours on their node need a message each, so nothing is gained.
void test_strewn_ranks(void**)
{
    std::vector<int> cyclic(64);
    for (std::size_t r = 0; r < cyclic.size(); r++) cyclic[r] = static_cast<int>(r % 8);
    std::vector<int> block(64);
    for (std::size_t r = 0; r < block.size(); r++) block[r] = static_cast<int>(r / 8);
    Constraints constraints;
    constraints.eager_bytes = 32 * kilo;
    constraints.route = Route::bundles;
    const AllgatherCost strewn(hier::Topology(cyclic), tcp());
    const AllgatherCost side_by_side(hier::Topology(block), tcp());
    assert_true(strewn.choose(16, constraints).seconds >
                2 * side_by_side.choose(16, constraints).seconds);
    // There are more messages, and no more bytes.
    assert_true(strewn.choose(4 * kilo, constraints).links <
                2 * side_by_side.choose(4 * kilo, constraints).links);
}

// Plans of bundles in virtual time: in host memory, in GPU memory, and staged.
const char* bundles_are_predicted(Options options, const std::vector<std::vector<int>>& layouts)
{
    for (const auto& layout : layouts) {
        options.layout = layout;
        const auto topology = make_topology(layout);
        const AllgatherCost cost(topology, rates_of(options.machine));
        Constraints constraints;
        constraints.route = Route::bundles;
        for (const std::size_t bytes : {1 * kilo, 16 * kilo, 64 * kilo, 512 * kilo}) {
            const Choice choice = cost.choose(bytes, constraints);
            const double seconds = run_hier(topology, options, bytes, choice).seconds;
            if (std::abs(choice.seconds / seconds - 1) > 0.25)
                return keep(std::to_string(layout.size()) + " nodes of " +
                            std::to_string(layout[0]) + ", " + std::to_string(bytes) +
                            " bytes: predicted " + std::to_string(choice.seconds * 1e6) +
                            " us, simulated " + std::to_string(seconds * 1e6));
        }
    }
    return nullptr;
}

void test_prediction(void**)
{
    const std::vector<int> small(4, 4), pairs(16, 2), large(16, 8);
    Options host;
    host.machine.is_host = true;
    host.machine.nic_rate = 12.5e9;
    host.machine.nic_latency = 5e-6;
    host.machine.link_latency = 1e-6;
    expect_no_reason(bundles_are_predicted(host, {small, large}));
    Options gpus;
    expect_no_reason(bundles_are_predicted(gpus, {small, pairs, large}));
    gpus.machine.stage_rate = 25e9;
    expect_no_reason(bundles_are_predicted(gpus, {small, pairs, large}));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_bundles_are_for_many_small_messages),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_bundles_with_a_handshake_are_for_copy_engines),
        cmocka_unit_test(test_a_bundle_is_one_chunk),
        cmocka_unit_test(test_strewn_ranks),
        cmocka_unit_test(test_prediction),
    };
    return hier::test::run_cases(argc, argv, "cost_bundles", tests);
}
