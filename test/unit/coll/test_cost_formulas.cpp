// SPDX-License-Identifier: BSD-3-Clause
// The cost model's formulas against times by hand, and their choices with constraints, windows and
// lanes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "net/stripes.hpp"
#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace bench::simulator;
using hier::AllgatherCost;
using hier::Route;

constexpr std::size_t kilo = 1 << 10, mega = 1 << 20;

// Times by hand of one whole shard.
bool formulas_hold()
{
    hier::Rates r;
    r.nic = 1e9;
    r.nic_latency = 1e-3;
    r.link = r.own = 2e9;
    const double wire = 1e6 / 1e9;
    const auto two = make_topology({1, 1});
    constexpr std::size_t million = 1000000;
    const double rail = AllgatherCost(two, r).predict(million, Route::direct, million, 2).seconds;
    const bool window = std::abs(rail - (3e-3 + std::max(wire, (wire + 2e-3) / 2))) < 1e-12;
    const auto one = make_topology({3});
    r.link_latency = 1e-4;
    const double copy = 1e-4 + 1e6 / 2e9;
    const double node = AllgatherCost(one, r).predict(million, Route::direct, million, 2).seconds;
    return window && std::abs(node - (3 * copy + 1e-4)) < 1e-12;
}

bool choices_make_sense()
{
    const Machine m;
    const auto one = AllgatherCost(make_topology({8}), rates_of(m)).choose(mega);
    const auto many = AllgatherCost(make_topology({8, 8}), rates_of(m)).choose(100);
    return one.chunk == mega && many.chunk == 100 && one.seconds > 0;
}

bool constraints_are_kept()
{
    const AllgatherCost cost(make_topology({4, 4, 4}), rates_of(Machine()));
    for (const Route route : {Route::direct, Route::ring}) {
        hier::Constraints constraints;
        constraints.route = route;
        constraints.chunk = 40000;
        constraints.depth = 7;
        const auto choice = cost.choose(mega, constraints);
        if (choice.route != route || choice.chunk != 40000 || choice.depth != 7) return false;
        if (cost.choose(100, constraints).chunk != 100) return false;
    }
    return true;
}

// Users may give ranks different windows. The rest of the choice must not differ.
bool the_window_changes_nothing_else()
{
    for (const double nic_latency : {1e-6, 20e-6}) {
        Machine m;
        m.nic_latency = nic_latency;
        const AllgatherCost cost(make_topology({2, 2, 2, 2}), rates_of(m));
        for (const std::size_t bytes : {64 * kilo, 256 * kilo, mega}) {
            const auto usual = cost.choose(bytes);
            for (const int depth : {1, 2, 16}) {
                hier::Constraints constraints;
                constraints.depth = depth;
                const auto choice = cost.choose(bytes, constraints);
                if (choice.route != usual.route || choice.chunk != usual.chunk) return false;
            }
        }
    }
    return true;
}

// Enough puts in flight for the way there and back.
bool the_window_covers_the_latency()
{
    Machine m;
    m.nic_rate = 50e9;
    m.nic_latency = 1e-6;
    hier::Constraints constraints;
    constraints.chunk = 64 * kilo;
    const int near =
        AllgatherCost(make_topology({2, 2}), rates_of(m)).choose(mega, constraints).depth;
    m.nic_latency = 10e-6;
    const int far =
        AllgatherCost(make_topology({2, 2}), rates_of(m)).choose(mega, constraints).depth;
    const double wire = 64 * kilo / m.nic_rate;
    return near >= 2 && far * wire >= wire + 2 * m.nic_latency;
}

// Puts with a high cost are large, but not larger than the cost needs.
bool puts_are_as_large_as_their_cost_wants()
{
    Machine m;
    m.nic_rate = 1e9;
    m.nics = 1;
    hier::Rates rates = rates_of(m);
    rates.nic_issue = 10e-6;
    const auto topology = make_topology({4, 4});
    const auto chunk = [&] { return AllgatherCost(topology, rates).choose(64 * mega).chunk; };
    // Four ranks share the NIC: 500 us on the wire for a cost of 10 us each.
    const bool is_bounded = chunk() <= 500 * kilo && chunk() >= 64 * kilo;
    rates.nic_issue = 100e-6;
    return is_bounded && chunk() > 500 * kilo;
}

// For a shard of two chunks, two NICs are like one of twice the rate. For a shard of one chunk, or
// with the odd chunk of three, they are less than that.
bool lanes_carry_a_chunk_each()
{
    hier::Rates one = rates_of({});
    one.nic_latency = one.nic_issue = one.copy_issue = 0;
    hier::Rates two = one, twice = one;
    two.lanes = 2;
    twice.nic = 2 * one.nic;
    const auto topology = make_topology({1, 1});
    const auto seconds = [&](const hier::Rates& rates, std::size_t cuts) {
        return AllgatherCost(topology, rates)
            .predict(6 * mega, Route::direct, 6 * mega / cuts, 64)
            .network;
    };
    const auto near = [](double a, double b) { return std::abs(a - b) < 1e-9 * b; };
    return near(seconds(two, 1), seconds(one, 1)) && near(seconds(two, 2), seconds(twice, 2)) &&
           near(seconds(two, 3), seconds(one, 3) * 2 / 3);
}

// Counts chunks as the rails do. The busiest lane decides how long direct puts take.
bool lanes_are_shared_by_peers()
{
    for (std::size_t nodes = 2; nodes < 8; nodes++) {
        for (std::size_t lanes = 1; lanes <= 4; lanes++) {
            hier::Rates rates = rates_of({});
            rates.nic_latency = rates.nic_issue = rates.copy_issue = 0;
            rates.lanes = static_cast<int>(lanes);
            const AllgatherCost cost(make_topology(std::vector<int>(nodes, 1)), rates);
            for (std::size_t chunks = 1; chunks < 8; chunks++) {
                const std::size_t stripes = std::min(chunks, lanes);
                const std::size_t used = hier::lanes_in_use(nodes, stripes, lanes);
                std::vector<std::size_t> on(used);
                for (std::size_t peer = 1; peer < nodes; peer++) {
                    for (std::uint32_t count = 1; count <= chunks; count++)
                        on[(hier::first_lane(0, peer, nodes, used) +
                            hier::stripe_of(count, stripes)) %
                           used]++;
                }
                const std::size_t busiest = *std::max_element(on.begin(), on.end());
                const double wanted = static_cast<double>(busiest * mega) / rates.nic;
                const double found = cost.predict(chunks * mega, Route::direct, mega, 64).network;
                if (std::abs(found - wanted) > 1e-9 * wanted) return false;
            }
        }
    }
    return true;
}

bool lanes_cut_what_one_nic_takes_whole()
{
    Machine m;
    m.is_host = true;
    m.nic_rate = 1e9;
    hier::Rates rates = rates_of(m);
    const auto topology = make_topology({1, 1});
    const auto one = AllgatherCost(topology, rates).choose(128 * kilo);
    rates.lanes = 2;
    const auto two = AllgatherCost(topology, rates).choose(128 * kilo);
    return two.chunk <= 64 * kilo && two.depth >= 4 && two.network < one.network;
}

// Ranks that share a network device over TCP.
bool tcp_chunks_are_neither_small_nor_large()
{
    Machine m;
    m.nic_rate = 1.25e9;
    m.nic_latency = 11e-6;
    m.nics = 1;
    m.stage_rate = 25e9;
    m.launch = 7e-6;
    m.fan_out = mega;
    m.kernel_gap = 4.1e-6;
    hier::Rates rates = rates_of(m);
    rates.nic_issue = 10e-6;
    rates.nic_gap = 5.5e-6;
    for (const int ranks : {1, 2, 4}) {
        const AllgatherCost cost(make_topology({ranks, ranks}), rates);
        for (std::size_t bytes = 64 * kilo; bytes <= 64 * mega; bytes *= 2) {
            const std::size_t chunk = cost.choose(bytes).chunk;
            if (chunk < std::min(bytes, 256 * kilo) || chunk > 640 * kilo) return false;
        }
    }
    return true;
}

void test_formulas(void**)
{
    assert_true(tcp_chunks_are_neither_small_nor_large());
    assert_true(lanes_carry_a_chunk_each());
    assert_true(lanes_are_shared_by_peers());
    assert_true(lanes_cut_what_one_nic_takes_whole());
    assert_true(puts_are_as_large_as_their_cost_wants());
    assert_true(constraints_are_kept());
    assert_true(the_window_changes_nothing_else());
    assert_true(the_window_covers_the_latency());
    assert_true(formulas_hold());
    assert_true(choices_make_sense());
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
    };
    return hier::test::run_cases(argc, argv, "cost_formulas", tests);
}
