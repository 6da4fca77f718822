// SPDX-License-Identifier: BSD-3-Clause
// Who moves a call that nobody waits for: the progress thread, or a thread of the application that is inside MPI. And
// where a call comes that waits for the thread to take it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include "api/progress_engine.hpp"
#include "api/progress_thread.hpp"
#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using std::chrono::steady_clock;

constexpr std::size_t bytes = 1 << 20;

// One node. hier believes that each thread has a core.
hier_config config_with_thread()
{
    setenv("HWLOC_SYNTHETIC", "core:64 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    hier_config config = config_for_tests();
    config.ranks_per_node = 0;
    config.intra = HIER_INTRA_CMA;
    config.progress_thread = 1;
    return config;
}

bool thread_moves() { return ProgressThread::instance().moves_calls(); }

// A call that nobody waits for.
class Background {
public:
    Background(TeamRank& team, int rank) : team_(team)
    {
        code_ = team.prepare(bytes, TeamRank::Form::plain, call_);
        if (code_ == HIER_OK) std::fill_n(call_.send, bytes, value(rank));
    }
    void start()
    {
        if (code_ == HIER_OK) code_ = team_.start(call_, HIER_NOBODY);
    }
    // The fault of a call of two ranks, or "".
    std::string finish()
    {
        (void)await([&] {
            return code_ != HIER_IN_PROGRESS ||
                   (code_ = hier_test(call_.request)) != HIER_IN_PROGRESS;
        });
        if (code_ != HIER_OK) return std::string("a call ends with: ") + hier_strerror(code_);
        for (int r = 0; r < 2; r++) {
            const std::byte* const block = call_.recv + static_cast<std::size_t>(r) * bytes;
            if (std::any_of(block, block + bytes, [=](std::byte b) { return b != value(r); }))
                return "a wrong byte";
        }
        return "";
    }

private:
    static std::byte value(int rank) { return static_cast<std::byte>(3 + rank); }

    TeamRank& team_;
    TeamRank::Prepared call_{};
    int code_;
};

// ---- the application leaves a call to the thread that moves it

// Passes of the application, for several times as long as it waits for a pass of the thread. The thread falls asleep
// when nothing moves.
bool leaves_calls_to_thread()
{
    ProgressThread::instance().wake();
    const auto start = steady_clock::now();
    while (!thread_moves() && steady_clock::now() < start + std::chrono::milliseconds(1)) {
    }
    const auto end = steady_clock::now() + std::chrono::microseconds(400);
    int passes = 0;
    while (steady_clock::now() < end || passes < 500) {
        if (!thread_moves()) return false;
        (void)hier_progress();
        passes++;
    }
    return true;
}

std::string leave_to_thread(ForkedRank& self)
{
    TeamRank team(self, config_with_thread());
    if (team.created() != HIER_OK) return ForkedRank::log_lines();
    std::string fault;
    Background call(team, self.rank());
    if (self.rank() == 0) {
        call.start();  // and waits for the other rank
        if (!await(leaves_calls_to_thread))
            fault = "the application does not leave the call to the thread";
    }
    (void)self.group().collect(0);
    if (self.rank() == 1) call.start();
    fault += call.finish();
    team.end();
    return fault;
}

void test_application_leaves_calls_to_thread(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, leave_to_thread))));
}

// ---- the application moves the others while the thread is held by one call

std::atomic<bool> is_held = false, is_free = false;
std::thread::id application;

void hold_progress_thread()
{
    if (std::this_thread::get_id() == application) return;
    is_held = true;
    // Without a bound of its own: a rank that hangs is ended from outside.
    while (!is_free) std::this_thread::yield();
}

// Rank 0's progress thread does not come back from its copy of `call` until is_free.
std::string hold_thread(ForkedRank& self, Background& call)
{
    application = std::this_thread::get_id();
    is_held = is_free = false;
    if (self.rank() != 0) {
        (void)self.group().collect(0);
        call.start();
        return "";
    }
    before_writev = hold_progress_thread;
    call.start();
    ForkedRank::while_waiting(nullptr);
    (void)self.group().collect(0);
    const bool has_come = await([] { return is_held.load(); });
    ForkedRank::while_waiting([] { return hier_progress(); });
    return has_come ? "" : "the thread does not copy";
}

// What is there beside the thread that is held. To prepare a call, too, takes the lock of its team.
struct Beside {
    TeamRank& other;  // which the thread does not hold
    Background &same,
        &another;  // a second call of the team that the thread holds, and one of `other`
};

// The fault of what `act` does while the progress thread is held by a call.
template <class Act> std::string fault_beside_held_thread(ForkedRank& self, const Act& act)
{
    TeamRank team(self, config_with_thread()), other(self, config_with_thread());
    if (team.created() != HIER_OK || other.created() != HIER_OK) return ForkedRank::log_lines();
    Background held(team, self.rank()), same(team, self.rank()), another(other, self.rank());
    std::string fault = hold_thread(self, held);
    fault += act(Beside{other, same, another});
    is_free = true;
    fault += held.finish();
    other.leave();
    team.end();
    return fault;
}

std::string call_at_once(TeamRank& team)
{
    std::string wrong;
    const int code = team.call(5000, wrong);
    return code == HIER_OK ? wrong : std::string("a blocking call: ") + hier_strerror(code);
}

std::string move_beside_held_thread(ForkedRank& self)
{
    return fault_beside_held_thread(self, [](const Beside& beside) {
        beside.another.start();
        return beside.another.finish();
    });
}

void test_application_moves_calls_beside_held_thread(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, move_beside_held_thread))));
}

// Nor does a post for the team that the thread holds keep the application from other teams.
std::string move_beside_post_for_held_team(ForkedRank& self)
{
    return fault_beside_held_thread(self, [](const Beside& beside) {
        beside.same.start();
        const std::string fault = call_at_once(beside.other);
        is_free = true;
        return fault + beside.same.finish();
    });
}

void test_application_goes_on_beside_post_for_held_team(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, move_beside_post_for_held_team))));
}

// ---- calls of a team run in the order of their starts, also those that wait for the thread to take them

// The ranks would find that their calls differ, if rank 0 began the second one first.
std::string start_behind_post(ForkedRank& self)
{
    return fault_beside_held_thread(self, [](const Beside& beside) {
        beside.another.start();
        const std::string fault = call_at_once(beside.other);
        return fault + beside.another.finish();
    });
}

void test_a_start_comes_behind_a_post(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, start_behind_post))));
}

std::string leave_behind_post(ForkedRank& self)
{
    return fault_beside_held_thread(self, [&](const Beside& beside) {
        if (self.rank() == 0) beside.another.start();
        beside.other.leave();
        return std::string(ProgressEngine::instance().has_posts() ? "a post is left" : "");
    });
}

void test_a_team_takes_its_posts_along(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, leave_behind_post))));
}

// ---- a thread that has nothing to do

// Seconds of a core that this process has had.
double core_time()
{
    timespec time{};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Soon after a call it takes less than 1 % of a core.
void test_idle_thread_sleeps(void**)
{
    static constexpr int most_tries = 20;
    static constexpr double second = 1, longest = second / 100;
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        TeamRank team(self, config_with_thread());
        Background call(team, self.rank());
        call.start();
        const std::string fault = call.finish();
        if (!fault.empty()) return fault;
        for (int i = 0; i < most_tries; i++) {
            const double before = core_time();
            std::this_thread::sleep_for(std::chrono::duration<double>(second));
            if (core_time() - before < longest) return "";
        }
        return "an idle thread keeps a core busy";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_application_leaves_calls_to_thread),
        cmocka_unit_test(test_application_moves_calls_beside_held_thread),
        cmocka_unit_test(test_application_goes_on_beside_post_for_held_team),
        cmocka_unit_test(test_a_start_comes_behind_a_post),
        cmocka_unit_test(test_a_team_takes_its_posts_along),
        cmocka_unit_test(test_idle_thread_sleeps),
    };
    return hier::test::run_cases(argc, argv, "progress_thread", tests);
}
