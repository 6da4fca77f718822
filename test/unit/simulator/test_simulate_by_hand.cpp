// SPDX-License-Identifier: BSD-3-Clause
// The simulator of bench/simulate: cases with times by hand, with one NIC for each rank, with fewer
// and with more.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/simulated_times.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::Route;

// l: latency of a copy. L: latency of the rail. i: issue of a copy

const char* two_ranks_of_a_node()
{
    Options options = even(1, 2);
    const Machine& m = options.machine;
    const double push = m.link_latency + mega / m.link_rate;
    // The announcement comes at l, and the copy is issued i later.
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

// The copy out of the bounce buffer does not wait for the push of the own shard.
const char* two_staged_nodes()
{
    Options options = even(2, 2);
    options.is_in_place = options.is_staged = true;
    options.machine.stage_rate = 50e9;
    options.machine.link_rate = 15e9;  // the push ends later than the shard arrives
    const Machine& m = options.machine;
    const double stage = m.link_latency + mega / m.stage_rate;
    const double push = m.link_latency + mega / m.link_rate;
    const double own_end = std::max(m.link_latency, m.copy_issue) + m.copy_issue + push;
    const double arrival = m.copy_issue + stage + mega / m.nic_rate + m.nic_latency;
    const double taken = arrival + m.copy_issue + stage;
    if (own_end <= arrival) return "the case shows nothing";
    return keep(differs("staged", seconds_of(options, mega, Route::direct, mega),
                        std::max(taken + m.copy_issue, own_end) + push));
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
void test_staged(void**) { expect_no_reason(two_staged_nodes()); }
void test_ring(void**) { expect_no_reason(a_ring_by_hand()); }

// ---- a rank with several NICs

// L + wire + L, the shard's halves side by side.
const char* two_lanes_of_a_rank()
{
    Options options = even(2, 1);
    options.is_in_place = true;
    options.machine.nics = 2;
    const Machine& m = options.machine;
    std::string wrong;
    for (const Route route : {Route::direct, Route::ring}) {
        wrong += differs("halves", seconds_of(options, mega, route, mega / 2),
                         3 * m.nic_latency + mega / 2 / m.nic_rate);
        wrong += differs("whole", seconds_of(options, mega, route, mega),
                         3 * m.nic_latency + mega / m.nic_rate);
    }
    return keep(wrong);
}

// Whole shards use a NIC of their own for each neighbour. Around a ring they use one NIC.
const char* two_peers_at_once()
{
    Options options = even(3, 1);
    options.is_in_place = true;
    options.machine.nics = 2;
    const Machine& m = options.machine;
    const double wire = mega / m.nic_rate;
    return keep(differs("direct", seconds_of(options, mega, Route::direct, mega),
                        3 * m.nic_latency + wire) +
                differs("ring", seconds_of(options, mega, Route::ring, mega),
                        4 * m.nic_latency + 2 * wire));
}

// The second chunk has a quarter of the bytes and lands first, but is pushed on after the first.
const char* chunks_count_in_order()
{
    Options options = even(2, 2);
    options.is_in_place = true;
    options.machine.nics = 4;
    const Machine& m = options.machine;
    const auto push = [&](std::size_t bytes) {
        return m.link_latency + static_cast<double>(bytes) / m.link_rate;
    };
    const double landed = 2 * m.nic_latency + mega / m.nic_rate;
    return keep(differs("in order", seconds_of(options, mega + mega / 4, Route::direct, mega),
                        landed + m.copy_issue + push(mega) + push(mega / 4)));
}

// As many lanes as the ranks of the fullest node can have.
const char* the_fullest_node_says_how_many()
{
    Machine m;
    std::string wrong;
    for (const auto& [nics, lanes] :
         {std::pair{0, 1}, {1, 1}, {4, 1}, {7, 1}, {8, 2}, {12, 3}, {40, 4}}) {
        m.nics = nics;
        if (lanes_of(m, {1, 4, 2}) != lanes) wrong += std::to_string(nics) + " NICs; ";
    }
    return keep(wrong);
}

// The choice of the cost model keeps all lanes busy. The model predicts the time.
const char* all_nics_are_kept_busy()
{
    Options options = even(4, 4);
    options.machine.nic_rate = 12.5e9;
    options.machine.nics = 16;
    options.route = RouteChoice::best;
    options.algorithms = {"hier"};
    for (const std::size_t bytes : {4 * mega, 64 * mega}) {
        const Result r = run_all(options, bytes)[0];
        const double bound = lower_bound(options.ranks_of(), bytes, options.machine).network;
        const double ratio = r.outcome.seconds / bound;
        if (ratio > (bytes > 16 * mega ? 1.05 : 1.3) || ratio < 1)
            return keep(std::to_string(ratio) + " of the bound");
        const double predicted = r.choice.seconds / r.outcome.seconds;
        if (std::abs(predicted - 1) > 0.1) return keep(std::to_string(predicted) + " predicted");
    }
    return nullptr;
}

void test_lanes(void**) { expect_no_reason(two_lanes_of_a_rank()); }
void test_peers(void**) { expect_no_reason(two_peers_at_once()); }
void test_order(void**) { expect_no_reason(chunks_count_in_order()); }
void test_how_many(void**) { expect_no_reason(the_fullest_node_says_how_many()); }
void test_busy(void**) { expect_no_reason(all_nics_are_kept_busy()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_one_node), cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_ring),     cmocka_unit_test(test_shared_nic),
        cmocka_unit_test(test_lanes),    cmocka_unit_test(test_peers),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_busy),     cmocka_unit_test(test_staged),
    };
    return hier::test::run_cases(argc, argv, "simulate_by_hand", tests);
}
