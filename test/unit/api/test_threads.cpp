// SPDX-License-Identifier: BSD-3-Clause
// Threads that make calls at the same time, each on a team of its own.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

hier_config config_of_one_node()
{
    hier_config config = config_for_tests();
    config.ranks_per_node = 0;
    config.intra = HIER_INTRA_CMA;
    return config;
}

std::string make_calls(TeamRank& team, int calls, std::size_t bytes)
{
    std::string wrong;
    for (int i = 0; i < calls && wrong.empty(); i++) {
        const int code = team.call(bytes, wrong);
        if (code != HIER_OK) return hier_strerror(code);
    }
    return wrong;
}

// ---- two copies at the same time

// A copy that waits until another thread copies, too. Once they have met, copies go on without a stop.
class Meeting {
public:
    static void copy()
    {
        if (is_over) return;
        if (++inside == 2) have_met = is_over = true;
        if (!await([] { return is_over.load(); })) is_over = true;
        inside--;
    }
    static bool was_held() { return have_met; }

private:
    // As hier::test::await, but without progress: a copy makes none.
    static bool await(bool (*is_true)())
    {
        const auto end = std::chrono::system_clock::now() + std::chrono::seconds(5);
        while (!is_true()) {
            if (std::chrono::system_clock::now() > end) return false;
            std::this_thread::yield();
        }
        return true;
    }
    static inline std::atomic<int> inside = 0;
    static inline std::atomic<bool> have_met = false, is_over = false;
};

std::string copy_at_the_same_time(ForkedRank& self)
{
    constexpr std::size_t bytes = 1 << 20;
    TeamRank first(self, config_of_one_node()), second(self, config_of_one_node());
    if (first.created() != HIER_OK || second.created() != HIER_OK) return ForkedRank::log_lines();
    before_writev = Meeting::copy;
    std::string faults[2];
    std::thread other([&] { faults[1] = make_calls(second, 2, bytes); });
    faults[0] = make_calls(first, 2, bytes);
    other.join();
    before_writev = nullptr;
    second.leave();
    first.end();
    if (!Meeting::was_held()) return "no two threads were in a copy at the same time";
    return faults[0] + faults[1];
}

void test_two_threads_copy_at_the_same_time(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, copy_at_the_same_time))));
}

// ---- a team that goes while another thread makes progress

std::string come_and_go(ForkedRank& self, int ranks_per_node)
{
    hier_config config = config_of_one_node();
    config.ranks_per_node = ranks_per_node;
    TeamRank lasting(self, config);
    if (lasting.created() != HIER_OK) return ForkedRank::log_lines();
    std::string faults[2];
    std::thread other([&] { faults[1] = make_calls(lasting, 100, 30000); });
    for (int i = 0; i < 10 && faults[0].empty(); i++) {
        TeamRank passing(self, config);
        faults[0] = passing.created() == HIER_OK ? make_calls(passing, 2, 30000) : "no team";
        passing.leave();
    }
    other.join();
    lasting.end();
    return faults[0] + faults[1];
}

void test_teams_come_and_go(void**)
{
    for (const int ranks_per_node : {0, 1}) {
        expect_no_reason(keep(first_fault(
            run_ranks(2, [=](ForkedRank& self) { return come_and_go(self, ranks_per_node); }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_two_threads_copy_at_the_same_time),
        cmocka_unit_test(test_teams_come_and_go),
    };
    return hier::test::run_cases(argc, argv, "threads", tests);
}
