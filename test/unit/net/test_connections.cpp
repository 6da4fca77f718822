// SPDX-License-Identifier: BSD-3-Clause
// A rank connects to its neighbours on the rail at set-up, and to other ranks when a call first exchanges
// data with them.
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "net/staggered.hpp"
#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr int ranks = 5;
constexpr std::size_t bytes = 20000;
// Signals stay behind their data by the lane, by a fence, and by a flush.
constexpr const char* networks[] = {"tcp", "rc", "tcp,self"};

hier_config config_of(const char* transports, int inter)
{
    hier_config config = config_for_tests();
    config.net_transports = transports;
    config.inter = inter;
    ucx.transports = "tcp";  // UCX gets these, whatever the core takes them for
    return config;
}

std::size_t connections() { return ucx.calls(UcxCall::ep_create); }

std::string gather(TeamRank& team)
{
    std::string wrong;
    const int code = team.created() == HIER_OK ? team.call(bytes, wrong) : team.created();
    return code == HIER_OK ? wrong : hier_strerror(code) + (": " + ForkedRank::log_lines());
}

// The lanes of teams that have left are gone: nobody waits for a goodbye that never comes.
bool have_lanes_gone()
{
    return await([] {
        for (int i = 0; i < 100; i++) (void)hier_progress();
        return ucx.mappings == 0;
    });
}

// ---- how many

std::string count_connections(ForkedRank& self, const char* transports)
{
    std::string fault;
    {
        TeamRank ring(self, config_of(transports, HIER_INTER_RING));
        if (connections() != 2) return "set-up makes " + std::to_string(connections());
        for (int i = 0; i < 2 && fault.empty(); i++) fault = gather(ring);
        if (connections() != 2) fault += "a ring makes " + std::to_string(connections());
        if (!fault.empty()) return fault;
        ring.leave();
        if (!have_lanes_gone()) return "the lane of a ring stays";
    }
    TeamRank direct(self, config_of(transports, HIER_INTER_DIRECT));
    if (connections() != 2) return "a second team makes " + std::to_string(connections());
    for (int i = 0; i < 2 && fault.empty(); i++) fault = gather(direct);
    if (connections() != ranks - 1) fault += "direct puts make " + std::to_string(connections());
    (void)self.group().collect(0);
    direct.leave();
    if (!have_lanes_gone()) fault += "the lane stays";
    return fault;
}

void test_connections(void**)
{
    for (const char* transports : networks) {
        expect_no_reason(keep(first_fault(run_ranks(
            ranks, [=](ForkedRank& self) { return count_connections(self, transports); }))));
    }
}

void test_order(void**)
{
    assert_true(staggered({0, 1, 3, 4}, 2, 5) == (std::vector<int>{3, 4, 0, 1}));
    assert_true(staggered({4, 1}, 0, 5) == (std::vector<int>{1, 4}));
}

// ---- ranks that enter late

// The others have connected to this rank, which makes no progress.
std::string enter_late(ForkedRank& self, const char* transports, std::size_t eager_bytes)
{
    hier_config config = config_of(transports, HIER_INTER_DIRECT);
    config.eager_bytes = eager_bytes;
    TeamRank team(self, config);
    if (self.rank() == 2) usleep(300000);
    std::string fault = gather(team);
    for (int i = 0; i < 3 && fault.empty(); i++) fault = gather(team);
    return fault;
}

void test_a_late_rank(void**)
{
    for (const char* transports : networks) {
        for (const std::size_t eager_bytes : {std::size_t{0}, bytes}) {
            expect_no_reason(keep(first_fault(run_ranks(ranks, [=](ForkedRank& self) {
                return enter_late(self, transports, eager_bytes);
            }))));
        }
    }
}

// ---- failures

// One rank cannot connect in the call, at its n-th attempt. The call fails everywhere, at once.
std::string fail_to_connect(ForkedRank& self, int nth, bool& has_failed)
{
    const bool is_culprit = self.rank() == 1;
    TeamRank team(self, config_of("tcp", HIER_INTER_DIRECT));
    if (team.created() != HIER_OK) return ForkedRank::log_lines();
    if (is_culprit) ucx.fail_nth(UcxCall::ep_create, nth, UcxFailure::at_once);
    std::string wrong;
    const int code = team.call(bytes, wrong);
    has_failed = ucx.has_failed();
    const bool is_late = ForkedRank::is_logged("not safe to reuse");
    const bool is_told = ForkedRank::is_logged("cannot be connected");
    const std::string lines = ForkedRank::log_lines();
    team.end();
    if (is_culprit && !has_failed) return code == HIER_OK ? "no such call" : hier_strerror(code);
    if (is_culprit && (code != HIER_ERR_TRANSPORT || !is_told)) return hier_strerror(code) + lines;
    if (!is_culprit && code != HIER_ERR_PEER) return code == HIER_OK ? "well" : hier_strerror(code);
    return is_late ? lines : "";
}

void test_a_connection_that_fails(void**)
{
    int nth = 0;
    for (bool is_over = false; !is_over; nth++) {
        const Ends ends = run_ranks(ranks, [=](ForkedRank& self) {
            bool has_failed = false;
            return fail_to_connect(self, nth + 1, has_failed);
        });
        is_over = ends[1] == "no such call";
        if (!is_over) expect_no_reason(keep(first_fault(ends)));
    }
    assert_int_equal(nth - 1, ranks - 1 - 2);
}

// One rank fails before its first call, so it never connects to all. Nobody waits for its goodbye.
std::string stay_away(ForkedRank& self, const char* transports)
{
    std::string wrong;
    TeamRank team(self, config_of(transports, HIER_INTER_DIRECT));
    if (team.created() != HIER_OK) return ForkedRank::log_lines();
    const int code = self.rank() == 3 ? team.refuse() : team.call(bytes, wrong);
    if (code != HIER_ERR_PEER && code != HIER_ERR_TRANSPORT) return hier_strerror(code);
    const bool is_late = ForkedRank::is_logged("not safe to reuse");
    // The rank that stays away answers the others for as long as they need it. UCX 1.13 aborts a process
    // that answers one which has gone.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (self.rank() == 3 && std::chrono::steady_clock::now() < end) (void)hier_progress();
    (void)self.group().collect(0);
    team.leave();
    if (!have_lanes_gone()) return "the lane stays";
    return is_late ? ForkedRank::log_lines() : "";
}

void test_a_rank_that_stays_away(void**)
{
    for (const char* transports : networks) {
        expect_no_reason(keep(first_fault(
            run_ranks(ranks, [=](ForkedRank& self) { return stay_away(self, transports); }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_a_late_rank),
        cmocka_unit_test(test_a_connection_that_fails),
        cmocka_unit_test(test_a_rank_that_stays_away),
    };
    return hier::test::run_cases(argc, argv, "connections", tests);
}
