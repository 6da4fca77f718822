// SPDX-License-Identifier: BSD-3-Clause
// A rank with several network devices. Data over one device may be late, and a chunk counts only
// after all chunks with lower numbers. The devices are connections over loopback, each with a
// context of its own.
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// ---- ranks

hier_config config_of_lanes(int ranks, int lanes)
{
    static std::string devices;
    devices = "lo";
    for (int i = 1; i < ranks * lanes; i++) devices += ",lo";  // the ranks of a host share the list
    hier_config config = config_for_tests();
    config.net_devices = devices.c_str();
    config.chunk_bytes = 16 << 10;
    config.eager_bytes = 1000;
    return config;
}

// Makes all calls, even after a fault, because the others make them, too.
std::string make_calls(TeamRank& team, const std::vector<std::size_t>& sizes)
{
    std::string fault;
    for (const std::size_t bytes : sizes) {
        std::string wrong;
        const int code = team.call(bytes, wrong);
        if (code != HIER_OK)
            return std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
        if (fault.empty() && !wrong.empty()) fault = std::to_string(bytes) + " bytes: " + wrong;
    }
    return fault;
}

// The sizes: eager, one chunk, two chunks, an odd number of chunks, many chunks.
const std::vector<std::size_t> sizes = {1000,  9,      16000,  30000, 100,   70001,
                                        40000, 500000, 500000, 17,    80000, 80000};

struct Run {
    int ranks, lanes, inter, ranks_per_node;
};

std::string call_over_lanes(ForkedRank& self, const Run& run, Lanes network)
{
    hier_config config = config_of_lanes(run.ranks, run.lanes);
    config.inter = run.inter;
    config.ranks_per_node = run.ranks_per_node;
    TeamRank team(self, config);
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    const std::string text = team.description();
    ucx.lanes = network;
    std::string fault;
    for (int i = 0; i < 3; i++) {
        const std::string wrong = make_calls(team, sizes);
        if (fault.empty()) fault = wrong;
    }
    team.end();
    const std::string wanted = std::to_string(run.lanes) + " a rank,";
    if (fault.empty() && text.find(wanted) == std::string::npos) fault = text;
    return fault.empty() ? ucx.leaks() : fault;
}

const Run runs[] = {{2, 2, HIER_INTER_DIRECT, 1},
                    {3, 2, HIER_INTER_RING, 1},
                    {3, 3, HIER_INTER_DIRECT, 1},
                    {4, 2, HIER_INTER_RING, 2},
                    {3, 2, HIER_INTER_DIRECT, 2}};

void test_calls(void**)
{
    for (const Run& run : runs) {
        expect_no_reason(keep(first_fault(run_ranks(
            run.ranks, [&](ForkedRank& self) { return call_over_lanes(self, run, Lanes::one); }))));
    }
}

void test_no_signal_of_one_lane_counts_for_another(void**)
{
    for (const Run& run : runs) {
        expect_no_reason(keep(first_fault(run_ranks(run.ranks, [&](ForkedRank& self) {
            return call_over_lanes(self, run, Lanes::second_late);
        }))));
    }
}

// With one peer, eager calls and calls of one chunk use the first device alone. Larger calls use
// both.
void test_small_calls_use_one_device(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        TeamRank team(self, config_of_lanes(2, 2));
        const std::size_t before = ucx.puts_of_second;
        std::string fault = make_calls(team, {8, 1000, 2000, 16 << 10});
        if (fault.empty() && ucx.puts_of_second != before) fault = "a small call on both";
        if (fault.empty()) fault = make_calls(team, {64 << 10});
        // On the second device: an announcement and its word, and two of four chunks with their
        // signals.
        if (fault.empty() && ucx.puts_of_second != before + 6)
            fault = std::to_string(ucx.puts_of_second - before) + " puts on the second";
        team.end();
        return fault;
    }))));
}

// With several peers calls of one chunk use both devices, too. On the second device go the chunk
// and its signal to one of two peers, and an announcement with its word to the other.
void test_peers_take_turns(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) -> std::string {
        hier_config config = config_of_lanes(3, 2);
        config.inter = HIER_INTER_DIRECT;
        TeamRank team(self, config);
        const std::size_t before = ucx.puts_of_second;
        std::string fault = make_calls(team, {8, 1000});
        if (fault.empty() && ucx.puts_of_second != before) fault = "an eager call on both";
        if (fault.empty()) fault = make_calls(team, {16 << 10});
        if (fault.empty() && ucx.puts_of_second != before + 4)
            fault = std::to_string(ucx.puts_of_second - before) + " puts on the second";
        team.end();
        return fault;
    }))));
}

// ---- devices that other ranks lack, or that fail

void test_as_many_as_every_member_has(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        hier_config config = config_of_lanes(2, 2);
        if (self.rank() == 1) config.nics = 1;
        TeamRank team(self, config);
        const std::string fault = make_calls(team, {100000, 100, 300000});
        const std::string text = team.description();
        team.end();
        if (fault.empty() && text.find("a rank,") != std::string::npos) return text;
        return fault.empty() ? ucx.leaks() : fault;
    }))));
}

void test_a_second_device_that_fails_is_left_out(void**)
{
    for (const UcxCall call : {UcxCall::init, UcxCall::mem_map, UcxCall::worker_create}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            if (self.rank() == 1) ucx.fail_nth(call, 2, UcxFailure::at_once);
            TeamRank team(self, config_of_lanes(2, 2));
            if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
            const std::string text = team.description();
            const std::string fault = make_calls(team, {100000, 100, 300000});
            const std::size_t tried = ucx.calls(UcxCall::init);
            team.leave();
            TeamRank next(self, config_of_lanes(2, 2));
            next.end();
            if (!ForkedRank::is_logged("lo is left out: ")) return ForkedRank::log_lines();
            if (ucx.calls(UcxCall::init) != tried) return "tried again";
            return text.find("a rank,") != std::string::npos ? text : fault;
        }))));
    }
}

// There is only the first device. The next communicator does not wait for the others again.
void test_a_first_device_that_fails_is_not_tried_again(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        if (self.rank() == 1) ucx.fail_nth(UcxCall::mem_map, 1, UcxFailure::at_once);
        std::size_t tried = 0;
        for (int team = 0; team < 2; team++) {
            tried = ucx.calls(UcxCall::mem_map);
            TeamRank refused(self, config_of_lanes(2, 1));
            if (refused.created() != HIER_ERR_SETUP) return hier_strerror(refused.created());
        }
        if (ucx.calls(UcxCall::mem_map) != tried) return "tried again";
        return ForkedRank::is_logged("could not be connected in the last 10 min")
                   ? ""
                   : ForkedRank::log_lines();
    }))));
}

// Every put fails in turn, on either lane, from announcements to chunks. Every rank gets an error,
// and hears on all lanes that nobody writes any more.
void test_a_lane_that_fails_later(void**)
{
    for (int nth = 1; nth <= 14; nth++) {
        const UcxFailure how = nth % 2 == 0 ? UcxFailure::at_once : UcxFailure::later;
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            TeamRank team(self, config_of_lanes(3, 2));
            if (self.rank() == 0) ucx.fail_nth(UcxCall::put, nth, how);
            std::string wrong;
            const int code = team.call(100000, wrong);
            team.end();
            if (ForkedRank::is_logged("not safe to reuse"))
                return "put " + std::to_string(nth) + ": " + ForkedRank::log_lines();
            if (code == HIER_ERR_PEER || code == HIER_ERR_TRANSPORT) return "";
            return "put " + std::to_string(nth) + ": ended with " + hier_strerror(code);
        }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_no_signal_of_one_lane_counts_for_another),
        cmocka_unit_test(test_small_calls_use_one_device),
        cmocka_unit_test(test_peers_take_turns),
        cmocka_unit_test(test_as_many_as_every_member_has),
        cmocka_unit_test(test_a_second_device_that_fails_is_left_out),
        cmocka_unit_test(test_a_first_device_that_fails_is_not_tried_again),
        cmocka_unit_test(test_a_lane_that_fails_later),
    };
    return hier::test::run_cases(argc, argv, "rail", tests);
}
