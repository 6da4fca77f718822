// SPDX-License-Identifier: BSD-3-Clause
// The simulator of bench/simulate: bounds, one node in place of all, and refused plans.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/simulator/algorithms.hpp"
#include "tools/simulator/competitors.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/simulated_times.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::Route;

// ---- one node for all

std::vector<Options> machines()
{
    std::vector<Options> all(7);
    all[1].machine.nics = 1;
    all[2].machine.depth = 5;
    all[2].machine.nics = 2;
    all[3].is_staged = true;
    all[3].machine.stage_rate = 50e9;
    all[4].machine.is_host = true;
    all[4].machine.link_latency = 1e-6;
    all[5].machine.streams = 3;
    all[5].machine.nic_rate = 400e9;
    all[5].is_in_place = true;
    all[5].machine.skew = 3e-6;
    all[6].machine.nics = 11;  // several a rank
    all[6].machine.nic_rate = 10e9;
    for (Options& options : all) options.route = RouteChoice::both;
    return all;
}

std::string shape_text(const Options& o, const Result& r)
{
    return std::to_string(o.nodes) + " x " + std::to_string(o.gpus) + ", " +
           std::to_string(o.machine.nics) + " nics, depth " + std::to_string(o.machine.depth) +
           ", " + r.algorithm;
}

const char* one_node_is_as_good_as_all()
{
    for (Options options : machines()) {
        for (int nodes = 1; nodes <= 6; nodes++) {
            for (int ranks = 1; ranks <= 4; ranks++) {
                options.nodes = nodes;
                options.gpus = ranks;
                for (const std::size_t chunk : {std::size_t{100000}, std::size_t{400000}}) {
                    options.chunk = chunk;
                    options.is_full = false;
                    const auto alone = run_all(options, 400000);
                    options.is_full = true;
                    const auto among = run_all(options, 400000);
                    for (std::size_t i = 0; i < alone.size(); i++) {
                        const std::string wrong =
                            differs(shape_text(options, alone[i]), alone[i].outcome.seconds,
                                    among[i].outcome.seconds);
                        if (!wrong.empty()) return keep(wrong);
                    }
                }
            }
        }
    }
    return nullptr;
}

void test_symmetry(void**) { expect_no_reason(one_node_is_as_good_as_all()); }

// ---- bounds

const char* nothing_beats_the_bound()
{
    const std::vector<std::vector<int>> layouts = {
        {1},    {4},       {2, 2},       {3, 1},    {4, 2, 1},
        {1, 5}, {3, 3, 3}, {2, 2, 2, 2}, {5, 4, 3}, {4, 4, 4, 4, 4, 4}};
    for (Options options : machines()) {
        for (const auto& layout : layouts) {
            options.layout = layout;
            for (const std::size_t bytes :
                 {std::size_t{1}, std::size_t{1000}, std::size_t{300000}, 4 * mega}) {
                const double bare = lower_bound(layout, bytes, options.machine).seconds();
                const Bound late = latency_bound(layout, bytes, options.machine);
                if (late.seconds() < bare)
                    return keep(text(late.seconds()) + ", yet " + text(bare));
                for (const Result& r : run_all(options, bytes)) {
                    const bool is_ours = r.choice.chunk > 0;
                    const double bound = is_ours ? late.seconds_once() : late.seconds();
                    if (r.outcome.seconds < std::max(bound, late.seconds()) * (1 - 1e-9))
                        return keep(r.algorithm + " in " + text(r.outcome.seconds) + " beats " +
                                    text(bound));
                }
            }
        }
    }
    return nullptr;
}

// 2 nodes of 2: two of the three shards that a rank lacks can come by its link and one by its NIC.
// A little may come to each rank by a NIC, or by links alone before a NIC brings any.
const char* bounds_by_hand()
{
    const std::vector<int> layout{2, 2};
    const Machine m;
    const double wire = mega / m.nic_rate, link = mega / m.link_rate;
    const double both = m.nic_rate + m.link_rate, copy = m.copy_issue + m.link_latency;
    const double idle = m.nic_rate * m.nic_latency + m.link_rate * copy;  // bytes
    const Bound bare = lower_bound(layout, mega, m), late = latency_bound(layout, mega, m);
    const Bound little = latency_bound(layout, 1000, m);
    std::string wrong = differs("network", bare.network, wire);
    wrong += differs("links", bare.links, 3.0 * mega / both);
    wrong += differs("once", bare.links_once, 2 * link);
    wrong += differs("late network", late.network, m.nic_latency + wire + m.link_latency / 2);
    wrong += differs("late links", late.links, (3.0 * mega + idle) / both);
    wrong += differs("late once", late.links_once, copy + 2 * link);
    wrong += differs("little network", little.network, m.nic_latency + 2 * 1000 / m.nic_rate);
    wrong += differs("little links", little.links, copy + 3 * 1000 / m.link_rate);
    return keep(wrong);
}

const char* more_bandwidth_is_never_slower()
{
    for (const auto& layout : {std::vector<int>{8, 8, 8, 8}, {4, 2, 1}, {8}, {1, 1, 1}}) {
        for (const Route route : {Route::direct, Route::ring}) {
            for (double Machine::*rate : {&Machine::nic_rate, &Machine::link_rate}) {
                double before = 1e9;
                for (const double bandwidth : {1e9, 5e9, 25e9, 50e9, 100e9, 200e9, 400e9, 4e12}) {
                    Options options;
                    options.layout = layout;
                    options.machine.*rate = bandwidth;
                    const double now = seconds_of(options, mega, route, mega / 4);
                    if (now > before)
                        return keep("at " + std::to_string(bandwidth) + " B/s " + text(now) +
                                    " after " + text(before));
                    before = now;
                }
            }
        }
    }
    return nullptr;
}

// The bytes of the network are the minimum: (N-1) G S leave every node. The plan decides whether
// the links' bytes are.
const char* the_network_carries_the_minimum()
{
    Options options = even(5, 4);
    options.algorithms = {"hier", "leader"};
    for (const Result& r : run_all(options, mega)) {
        if (r.outcome.network_bytes != 4.0 * 4 * mega)
            return keep(r.algorithm + ": " + std::to_string(r.outcome.network_bytes));
    }
    return nullptr;
}

void test_bounds(void**)
{
    expect_no_reason(bounds_by_hand());
    expect_no_reason(nothing_beats_the_bound());
}
void test_bandwidth(void**) { expect_no_reason(more_bandwidth_is_never_slower()); }
void test_network_bytes(void**) { expect_no_reason(the_network_carries_the_minimum()); }

// ---- refused plans

bool a_plan_that_never_ends_is_told()
{
    const auto topology = make_topology({2});
    const auto shards = hier::equal_shards(2, mega);
    try {
        (void)simulate(topology, Machine(), Symmetry::none, [&](int rank) {
            hier::Plan plan = plan_flat_ring({topology, shards}, rank);
            for (auto& op : plan.ops) op.count *= 2;  // waits for twice as much
            return plan;
        });
    } catch (const std::runtime_error&) {
        return true;
    }
    return false;
}

bool is_refused(const std::vector<std::string>& arguments)
{
    Options options;
    return !parse_options(arguments, options).empty();
}

void test_refusals(void**)
{
    assert_true(a_plan_that_never_ends_is_told());
    assert_true(is_refused({"--nodes", "0"}));
    assert_true(is_refused({"--bytes"}));
    assert_true(is_refused({"--bytes", "0"}));
    assert_true(is_refused({"--nic-rate", "50GiB"}));
    assert_true(is_refused({"--nic-latency", "5"}));
    assert_true(is_refused({"--layout", "4,0"}));
    assert_true(is_refused({"--algorithms", "hier,magic"}));
    assert_true(is_refused({"--frobnicate"}));
    assert_false(is_refused({"--layout=4+2+1", "--nic-rate=1gbit", "--host"}));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_symmetry),  cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bandwidth), cmocka_unit_test(test_network_bytes),
        cmocka_unit_test(test_refusals),
    };
    return hier::test::run_cases(argc, argv, "simulate", tests);
}
