// SPDX-License-Identifier: BSD-3-Clause
// The model rejects a broken network. Right plans run, and one of their puts meets a hazard: each
// put of every pair once.
#include <random>
#include <string>
#include <vector>

#include "hunt.hpp"
#include "model.hpp"
#include "shapes.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::model;
using hier::test::expect_no_reason;
using hier::test::keep;

// How many hazards were met.
struct Met {
    int times = 0;
    int as_signal_without_data = 0;
    int as_deadlock = 0;
    int as_not_held = 0;
};

std::string text_of(const Topology& topology, const Call& call, const Schedule& schedule)
{
    const Pair& c = schedule.pair;
    return "put " + std::to_string(schedule.number) + " from " + std::to_string(c.from) + " to " +
           std::to_string(c.to) + (c.level == Level::rail ? " on the rail" : " on the node") +
           ", nodes of ranks " + describe(topology) + ", " + to_string(call.route);
}

int neighbour_of(const Topology& topology, int rank)
{
    const auto ranks = topology.ranks_on(topology.node_of(rank));
    return ranks[static_cast<std::size_t>(topology.local_of(rank) + 1) % ranks.size()];
}

// Each put of a call meets the hazard once, with shards of a few bytes. "" or what is wrong.
std::string meet_everywhere(const Topology& topology, const Call& call, Schedule::Kind hazard,
                            Met& met)
{
    const std::vector<Call> calls = {call, call};
    for (int from = 0; from < topology.size(); from++) {
        for (const Op& op : call.plan(from).ops) {
            if (op.kind != Op::Kind::put) continue;
            const int to = op.peer == Op::every_peer ? neighbour_of(topology, from) : op.peer;
            for (unsigned seed = 0; seed < 3; seed++) {
                const Schedule schedule{hazard, seed, {op.level, from, to}, op.count};
                const Verdict verdict = run(topology, calls, schedule);
                met.times++;
                met.as_signal_without_data += verdict.fault == Fault::signal_without_data;
                met.as_deadlock += verdict.fault == Fault::deadlock;
                met.as_not_held += verdict.fault == Fault::not_held;
                if (verdict.fault == Fault::none)
                    return "not seen: " + text_of(topology, call, schedule);
            }
        }
    }
    return "";
}

const char* each_is_seen(Schedule::Kind hazard, Met& met)
{
    std::mt19937 random(1);
    for (const auto& cut :
         std::vector<std::vector<int>>{{3}, {2, 2}, {3, 1}, {1, 1, 1}, {2, 3, 1}}) {
        const Topology topology(nodes_of_sizes(cut));
        for (const Route route : all_routes) {
            for (const bool publish : {false, true}) {
                Call call;
                call.chunk = 3;
                call.shards = equal_shards(topology.size(), 3 * call.chunk + 1);
                call.route = route;
                call.in_place = some_of(topology.size(), random);
                call.bounce = none_some_or_all_of(topology.size(), random);
                call.publish = publish;
                const auto why = meet_everywhere(topology, planned(topology, call), hazard, met);
                if (!why.empty()) return keep(why);
            }
        }
    }
    return nullptr;
}

void test_signal_before_data(void**)
{
    Met met;
    expect_no_reason(each_is_seen(Schedule::Kind::signal_first, met));
    assert_true(met.times > 1000);
    assert_int_equal(met.as_signal_without_data, met.times);
}

void test_lost_data(void**)
{
    Met met;
    expect_no_reason(each_is_seen(Schedule::Kind::data_lost, met));
    assert_true(met.times > 1000);
    assert_int_equal(met.as_signal_without_data, met.times);
}

// Without the chunk and its signal, one of three things happens. Somebody waits for ever, which the
// executor ends by its time-out. On a rail the next signal counts the lost chunk. Inside a node the
// next put of a bundle counts in its place.
void test_lost_chunk(void**)
{
    Met met;
    expect_no_reason(each_is_seen(Schedule::Kind::chunk_lost, met));
    assert_true(met.as_deadlock > 100);
    assert_true(met.as_signal_without_data > 100);
    assert_int_equal(met.as_deadlock + met.as_signal_without_data + met.as_not_held, met.times);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_before_data),
        cmocka_unit_test(test_lost_data),
        cmocka_unit_test(test_lost_chunk),
    };
    return hier::test::run_cases(argc, argv, "model_network", tests);
}
