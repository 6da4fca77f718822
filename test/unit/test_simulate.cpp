// The simulator of bench/simulate: cases by hand, bounds, and one node standing for all.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/algorithms.hpp"
#include "simulator/competitors.hpp"

#include "cmocka.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::Route;

constexpr std::size_t mega = 1 << 20;

// Copies one by one, so that times can be had by hand.
Options even(int nodes, int ranks)
{
    Options options;
    options.nodes = nodes;
    options.gpus = ranks;
    options.machine.streams = 1;
    options.machine.copy_issue = 2.3e-6;
    return options;
}

double seconds_of(const Options& options, std::size_t bytes, Route route, std::size_t chunk)
{
    return run_hier(make_topology(options.ranks_of()), options, bytes, {route, chunk, 2}).seconds;
}

std::string text(double seconds) { return std::to_string(seconds * 1e6) + " us"; }

std::string differs(const std::string& what, double got, double wanted)
{
    constexpr double rounding = 1e-11;  // some picoseconds
    if (std::abs(got - wanted) <= rounding) return "";
    return what + ": " + text(got) + " instead of " + text(wanted);
}

// ---- by hand: l, L latencies of a copy and of the rail, i the issue of a copy

const char* two_ranks_of_a_node()
{
    Options options = even(1, 2);
    const Machine& m = options.machine;
    const double push = m.link_latency + mega / m.link_rate;
    // Announced at l, issued i later.
    options.is_in_place = true;
    std::string wrong = differs("in place", seconds_of(options, mega, Route::direct, mega),
                                m.link_latency + m.copy_issue + push);
    if (!wrong.empty()) return keep(wrong);
    // The own copy is issued at once and delays the push.
    options.is_in_place = false;
    const double own_end = m.copy_issue + m.link_latency + mega / m.copy_rate;
    const double issued = 2 * m.copy_issue;
    return keep(differs("with a copy", seconds_of(options, mega, Route::direct, mega),
                        std::max(own_end, issued) + push));
}

const char* two_nodes_of_a_rank()
{
    Options options = even(2, 1);
    options.is_in_place = true;
    const Machine& m = options.machine;
    const double wire = mega / m.nic_rate, latency = m.nic_latency;
    for (const Route route : {Route::direct, Route::ring}) {
        // Announcement, put, and its completion.
        std::string wrong =
            differs("whole", seconds_of(options, mega, route, mega), 3 * latency + wire);
        // Four chunks, two in flight: the third goes when the first is done.
        if (wrong.empty()) {
            options.machine.nic_latency = wire;
            wrong = differs("window", seconds_of(options, mega, route, mega / 4),
                            wire + 2 * (2 * wire + wire / 4) + wire / 4);
            options.machine.nic_latency = latency;
        }
        if (!wrong.empty()) return keep(wrong);
    }
    return nullptr;
}

const char* two_nodes_that_share_a_nic()
{
    Options options = even(2, 2);
    options.is_in_place = true;
    options.machine.nics = 1;
    options.machine.link_rate = 1e15;  // only latencies remain
    const Machine& m = options.machine;
    // The second rank's shard waits for the first's, then is pushed on.
    const double push = m.copy_issue + m.link_latency + mega / m.link_rate;
    return keep(differs("shared", seconds_of(options, mega, Route::direct, mega),
                        2 * m.nic_latency + 2 * mega / m.nic_rate + std::max(m.nic_latency, push)));
}

const char* a_ring_by_hand()
{
    Options options = even(3, 1);
    options.is_in_place = true;
    const Machine& m = options.machine;
    // Two hops one after the other.
    return keep(differs("ring", seconds_of(options, mega, Route::ring, mega),
                        m.nic_latency + 2 * (m.nic_latency + mega / m.nic_rate) + m.nic_latency));
}

void test_one_node(void**) { expect_no_reason(two_ranks_of_a_node()); }
void test_two_nodes(void**) { expect_no_reason(two_nodes_of_a_rank()); }
void test_shared_nic(void**) { expect_no_reason(two_nodes_that_share_a_nic()); }
void test_ring(void**) { expect_no_reason(a_ring_by_hand()); }

// ---- one node for all

std::vector<Options> machines()
{
    std::vector<Options> all(6);
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

// Whether the link's bytes are the minimum is the plan's affair: (N-1) G S leave every node.
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

// ---- what it refuses

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

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node),   cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_shared_nic), cmocka_unit_test(test_ring),
        cmocka_unit_test(test_symmetry),   cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bandwidth),  cmocka_unit_test(test_network_bytes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("simulate", tests, nullptr, nullptr);
}
