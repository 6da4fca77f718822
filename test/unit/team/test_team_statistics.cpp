// SPDX-License-Identifier: BSD-3-Clause
// What a team counts for tools: its calls by path, with their bytes and times, and its programs.
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr int ranks = 2;
constexpr int calls = 3;
constexpr std::size_t large = 300000, small = 1000;
constexpr int copies = HIER_PATH_COPIES;

hier_config config_of_one_node()
{
    hier_config config = config_for_tests();
    config.ranks_per_node = 0;
    return config;
}

hier_config config_of_route(int route)
{
    hier_config config = config_for_tests();
    config.inter = route;
    config.eager_bytes = small;
    return config;
}

// Makes calls of one size in the same memory. "" or what is counted wrongly.
std::string fault_of_calls(TeamRank& team, std::size_t bytes, int path)
{
    std::vector<std::byte> send(bytes), recv(bytes * ranks);
    std::vector<unsigned long long> wanted(HIER_STATISTICS);
    for (int i = 0; i < HIER_STATISTICS; i++)
        wanted[static_cast<std::size_t>(i)] = hier_statistic(i);
    const auto add = [&](int statistic, std::size_t n) {
        wanted[static_cast<std::size_t>(statistic)] += n;
    };
    std::string wrong;
    for (int i = 0; i < calls && wrong.empty(); i++) {
        const int code = team.call(bytes, send, recv.data(), wrong);
        if (code != HIER_OK) wrong = hier_strerror(code);
    }
    add(HIER_STATISTIC_CALLS + path, calls);
    add(HIER_STATISTIC_BYTES + path, calls * ranks * bytes);
    add(HIER_STATISTIC_PROGRAM_HITS, calls - 1);
    add(HIER_STATISTIC_PROGRAM_MISSES, 1);
    if (path >= HIER_PATH_DIRECT && bytes == large) {  // eager calls need no key
        add(HIER_STATISTIC_KEY_HITS, calls - 1);
        add(HIER_STATISTIC_KEY_MISSES, 1);
    }
    for (int i = 0; i < HIER_STATISTICS && wrong.empty(); i++)
        if (hier_statistic(i) != wanted[static_cast<std::size_t>(i)])
            wrong = "statistic " + std::to_string(i) + " is " + std::to_string(hier_statistic(i)) +
                    ", not " + std::to_string(wanted[static_cast<std::size_t>(i)]);
    return wrong;
}

const char* count_on(const hier_config& config, std::size_t bytes, int path)
{
    return keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) -> std::string {
        TeamRank team(self, config);
        if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
        if (hier_statistic(HIER_STATISTIC_TEAMS) != 1) return "the team is not counted";
        if (hier_statistic(HIER_STATISTIC_SETUP_TIME) == 0) return "its set-up took no time";
        const std::string fault = fault_of_calls(team, bytes, path);
        const int at = HIER_STATISTIC_CALLS + path;
        const unsigned long long counted = hier_statistic(at);
        team.end();
        return fault.empty() && hier_statistic(at) != counted ? "the team takes its counts along"
                                                              : fault;
    })));
}

void test_copies(void**) { expect_no_reason(count_on(config_of_one_node(), large, copies)); }

void test_published(void**)
{
    expect_no_reason(count_on(config_of_one_node(), small, HIER_PATH_PUBLISHED));
}

void test_routes(void**)
{
    for (const std::size_t bytes : {large, small}) {
        expect_no_reason(count_on(config_of_route(HIER_INTER_DIRECT), bytes, HIER_PATH_DIRECT));
        expect_no_reason(count_on(config_of_route(HIER_INTER_RING), bytes, HIER_PATH_RING));
        expect_no_reason(count_on(config_of_route(HIER_INTER_BUNDLES), bytes, HIER_PATH_BUNDLES));
    }
}

// The nanoseconds that a call of 7 us adds. `when`: what is done in the middle of the call.
unsigned long long time_of_call(TeamRank& team, void (*when)())
{
    const std::vector<std::byte> send(large);
    std::vector<std::byte> recv(large);
    const int at = HIER_STATISTIC_CALL_TIME + copies;
    const unsigned long long before = hier_statistic(at);
    const int code = team.start_raw(send.data(), recv.data(), large);
    fake_now += std::chrono::microseconds(7);
    when();
    return team.finish(code) == HIER_OK ? hier_statistic(at) - before : 1;
}

void test_times_are_measured_while_they_are_wanted(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank& self) -> std::string {
        use_clock(ClockMode::fake);
        TeamRank team(self, config_of_one_node());
        if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
        const auto nothing = [] {};
        if (time_of_call(team, nothing) != 0) return "nobody wants a time";
        if (time_of_call(team, [] { hier_want_call_times(1); }) != 0) return "wanted too late";
        if (time_of_call(team, nothing) != 7000) return "a time is wanted";
        hier_want_call_times(0);
        return time_of_call(team, nothing) == 0 ? "" : "nobody wants a time any more";
    }))));
}

void test_calls_that_fail_do_not_count(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(ranks, [](ForkedRank& self) -> std::string {
        TeamRank team(self, config_of_one_node());
        if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
        std::string wrong;
        if (self.rank() == 0 ? team.refuse() == HIER_OK : team.call(large, wrong) == HIER_OK)
            return "the call ends well";
        return hier_statistic(HIER_STATISTIC_CALLS + copies) == 0 ? "" : "it counts";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_times_are_measured_while_they_are_wanted),
        cmocka_unit_test(test_calls_that_fail_do_not_count),
    };
    return hier::test::run_cases(argc, argv, "team_statistics", tests);
}
