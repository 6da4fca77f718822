// SPDX-License-Identifier: BSD-3-Clause
// Small calls in the simulator of bench/simulate: messages that wait for nobody, publishes inside a
// node, and bundles. Cases by hand, and one node in place of all.
#include <string>
#include <vector>

#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/simulated_times.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::Choice;
using hier::Route;

constexpr std::size_t bytes = 1000;

Options host(const std::vector<int>& layout)
{
    Options options;
    options.layout = layout;
    options.machine.is_host = true;
    options.machine.link_latency = 1e-6;
    options.machine.message = 2e-6;
    options.machine.nic_gap = 3e-6;
    return options;
}

Choice small(Route route, std::size_t chunk)
{
    Choice choice{route, chunk, 2};
    choice.eager = choice.publish = true;
    return choice;
}

double seconds_of(const Options& options, const Choice& choice)
{
    return run_hier(make_topology(options.layout), options, bytes, choice).seconds;
}

// A rank writes its block, copies it to the receive buffer, and then reads the blocks of the
// others.
const char* a_publish_by_hand()
{
    std::string wrong;
    for (const int ranks : {2, 5}) {
        Options options = host({ranks});
        Machine& m = options.machine;
        m.memory_rate = 1e15;
        const double one = m.publish_latency + bytes / m.core_rate;
        wrong += differs("all at once", seconds_of(options, small(Route::direct, bytes)),
                         (1 + ranks) * one);
        // When the last rank comes, the blocks of the others are there. They have not waited for
        // this rank.
        m.skew = 1e-3;
        wrong += differs("one after the other", seconds_of(options, small(Route::direct, bytes)),
                         (ranks - 1) * m.skew + (1 + ranks) * one);
    }
    return keep(wrong);
}

const char* an_eager_message_by_hand()
{
    Options options = host({1, 1});
    const Machine& m = options.machine;
    const double port = bytes / m.nic_rate + m.nic_gap;
    std::string wrong;
    for (const Route route : {Route::direct, Route::ring}) {
        wrong += differs("two nodes", seconds_of(options, small(route, bytes)),
                         2 * m.message + m.nic_latency + port);
    }
    // All puts go at once, whatever the window. Then the rank takes all that came.
    options = host({1, 1, 1, 1});
    Choice choice = small(Route::direct, bytes);
    choice.depth = 8;
    wrong += differs("four nodes", seconds_of(options, choice),
                     m.message + m.nic_latency + 3 * port + m.message);
    return keep(wrong);
}

// The messages to a late rank wait there.
const char* a_late_rank_by_hand()
{
    Options options = host({2, 2});
    options.machine.memory_rate = 1e15;
    options.machine.skew = 1e-3;
    const Machine& m = options.machine;
    const double one = m.publish_latency + bytes / m.core_rate;
    const double port = bytes / m.nic_rate + m.nic_gap;
    // The late rank's block goes to the other node at once. There it is taken and handed on to the
    // first rank, which has read the other block of its node long before.
    const double taken = m.skew + 2 * m.message + m.nic_latency + port;
    return keep(differs("late", seconds_of(options, small(Route::direct, bytes)), taken + 2 * one));
}

void test_publish(void**) { expect_no_reason(a_publish_by_hand()); }
void test_eager(void**) { expect_no_reason(an_eager_message_by_hand()); }
void test_late(void**) { expect_no_reason(a_late_rank_by_hand()); }

const char* one_node_is_as_good_as_all()
{
    for (const Route route : hier::all_routes) {
        for (const auto& layout : {std::vector<int>(2, 4), std::vector<int>(5, 3)}) {
            for (const bool is_host : {true, false}) {
                Options options = host(layout);
                options.machine.is_host = is_host;
                options.machine.nics = 1;
                Choice choice = small(route, bytes * 8);
                choice.publish = is_host;
                const double alone = seconds_of(options, choice);
                options.is_full = true;
                const std::string wrong =
                    differs(to_string(route), alone, seconds_of(options, choice));
                if (!wrong.empty()) return keep(wrong);
            }
        }
    }
    return nullptr;
}

void test_symmetry(void**) { expect_no_reason(one_node_is_as_good_as_all()); }

// The eager messages and the publishes of the simulator are those of hier.
void test_choices(void**)
{
    Options options = host({4, 4});
    options.route = RouteChoice::best;
    options.algorithms = {"hier"};
    assert_true(run_all(options, 16)[0].choice.eager);
    assert_true(run_all(options, 16)[0].choice.publish);
    assert_false(run_all(options, 64 << 10)[0].choice.eager);
    assert_false(run_all(options, 64 << 10)[0].choice.publish);
    options.machine.eager_bytes = 0;
    assert_false(run_all(options, 16)[0].choice.eager);
    options.machine.is_host = false;
    assert_false(run_all(options, 16)[0].choice.publish);
}

// The other algorithms have no such messages.
void test_others(void**)
{
    Options options = host({2, 2, 2, 2});
    options.algorithms = {"ring", "doubling", "leader"};
    const auto before = run_all(options, 1000);
    options.machine.message = options.machine.nic_gap = 1e-3;
    const auto after = run_all(options, 1000);
    for (std::size_t i = 0; i < before.size(); i++)
        assert_true(before[i].outcome.seconds == after[i].outcome.seconds);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_publish), cmocka_unit_test(test_eager),
        cmocka_unit_test(test_late),    cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_choices), cmocka_unit_test(test_others),
    };
    return hier::test::run_cases(argc, argv, "simulate_small", tests);
}
