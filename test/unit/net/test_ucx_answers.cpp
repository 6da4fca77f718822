// SPDX-License-Identifier: BSD-3-Clause
// With UCX's new protocols over TCP a put is done when its target has answered (seen with UCX
// 1.18). The target answers only while it makes progress on its worker. Still, a rank that has left
// a call must not delay the others. Also: what the sender of a large chunk hears.
#include <memory>
#include <string>
#include <vector>

#include "net/ucx/lane/retired_lanes.hpp"
#include "net/ucx/lane/ucx_lane.hpp"
#include "net/ucx/ucx_workers.hpp"
#include "team/group.hpp"
#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/clock.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// The ranks wait for each other without making progress.
void meet(const ForkedRank& self) { (void)self.group().collect(self.rank()); }

// The status of each operation. They are numbered from 0.
struct Completed final : Completions {
    void complete(std::uint32_t op, Status status) override { statuses.at(op) = status; }
    std::vector<Status> statuses{Status::in_progress};
};

// The last operation of a call between nodes is a drain. Its receiver computes meanwhile.
std::string drain_to_a_peer_that_computes(ForkedRank& self)
{
    const auto worker = UcxWorkers::get({.devices = "lo", .transports = "tcp"});
    const LanePointer rail(new UcxLane(worker, RailBoard(worker->context(), 2),
                                       {self.rank() == 1, self.rank() == 0}, 1));
    rail->connect(self.group(), nullptr);
    meet(self);
    ucx.answers_puts = true;
    Completed completed;
    const std::size_t before = ucx.calls(UcxCall::message);
    if (self.rank() == 0) {
        completed.statuses[0] = rail->drain(1, 0);
        (void)await([&] {
            return failed(rail->progress(completed)) ||
                   completed.statuses[0] != Status::in_progress;
        });
    }
    meet(self);
    ucx.answers_puts = false;
    if (self.rank() == 1) return "";
    if (ucx.calls(UcxCall::message) != before + 1) return "nothing goes behind the puts";
    return completed.statuses[0] == Status::ok ? "" : "the drain does not end";
}

void test_a_drain_needs_no_answer(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, drain_to_a_peer_that_computes))));
}

// A goodbye must be no put. A process may go on after a peer that it has spawned has ended. A put
// that the peer does not answer any more would be an error there. Before 1.22, UCX also ends a
// process that cannot answer.
std::string leave(ForkedRank& self)
{
    TeamRank team(self, config_for_tests());
    std::string fault;
    if (team.call(100000, fault) != HIER_OK) return "the call fails";
    const std::size_t puts = ucx.calls(UcxCall::put), messages = ucx.calls(UcxCall::message);
    team.end();
    if (ucx.calls(UcxCall::message) != messages + 1) fault = "no goodbye";
    return ucx.calls(UcxCall::put) == puts ? fault : "a put when it leaves";
}

void test_a_goodbye_needs_no_answer(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, leave))));
}

// One rank has left the call between nodes. It waits in a call inside its node for the other rank.
// That one is still in the first call and needs the answers.
std::string call_on_two_teams(ForkedRank& self)
{
    constexpr std::size_t bytes = 100000;
    constexpr int calls = 30;
    hier_config config = config_for_tests();
    config.chunk_bytes = 16 << 10;
    TeamRank far(self, config);
    config.ranks_per_node = 0;
    TeamRank near(self, config);
    if (far.created() != HIER_OK || near.created() != HIER_OK) return "no team";
    ucx.answers_puts = true;
    std::string fault;
    for (int i = 0; i < calls && fault.empty(); i++) {
        for (TeamRank* team : {&far, &near}) {
            const int code = team->call(bytes, fault);
            if (code != HIER_OK) fault = hier_strerror(code);
        }
    }
    ucx.answers_puts = false;
    far.leave();
    near.end();
    return fault;
}

void test_a_call_on_one_node_answers_others(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, call_on_two_teams))));
}

// UCX tells only when a whole put is done. So a large chunk goes in parts.
std::string put_in_parts(ForkedRank& self)
{
    hier_config config = config_for_tests();
    config.chunk_bytes = 16 << 20;
    TeamRank team(self, config);
    std::string fault;
    const auto puts_of = [&](std::size_t bytes) {
        const std::size_t before = ucx.calls(UcxCall::put);
        if (team.call(bytes, fault) != HIER_OK) fault = "the call fails";
        return ucx.calls(UcxCall::put) - before;
    };
    const std::size_t few = puts_of(1 << 20), many = puts_of((8 << 20) + 1);
    team.end();
    if (!fault.empty()) return fault;
    // Each part but the last one has a word behind it. There may be heartbeats, too.
    return many >= few + 16 ? "" : std::to_string(few) + " puts, then " + std::to_string(many);
}

void test_a_large_chunk_goes_in_parts(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, put_in_parts))));
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_drain_needs_no_answer),
        cmocka_unit_test(test_a_goodbye_needs_no_answer),
        cmocka_unit_test(test_a_call_on_one_node_answers_others),
        cmocka_unit_test(test_a_large_chunk_goes_in_parts),
    };
    return hier::test::run_cases(argc, argv, "ucx_answers", tests);
}
