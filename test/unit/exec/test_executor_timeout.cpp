// SPDX-License-Identifier: BSD-3-Clause
// When the executor has to give up, and when it must not. The test moves the clock.
#include <algorithm>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "test/support/machine.hpp"
#include "test/support/simulation.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using namespace std::chrono_literals;

constexpr const char* machines[] = {"3", "1,1,1", "2,2", "3,1", "1,1,1,1", "2,1,2"};

std::vector<std::string> lines;
void collect(int, const char* line) { lines.emplace_back(line); }

bool is_logged(const std::string& words)
{
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& line) { return line.find(words) != std::string::npos; });
}

Scenario slow(const char* text, Route route, std::chrono::seconds timeout)
{
    Scenario scenario{.nodes = machine(text), .route = route};
    scenario.calls = 2;
    scenario.limits.watchdog.timeout = timeout;
    scenario.limits.watchdog.fails = true;
    scenario.pass = 200us;
    return scenario;
}

// A rank counts as late until somebody sees it. So its own blocks go out before anything happens to
// it.
void publish_at_once(Scenario& scenario)
{
    scenario.publish = Publish::all;
    scenario.weather.immediate = 100;
}

// ---- the call must end

// Every rank failed, and at least one says why.
std::string fault_of_end(const Scenario& scenario)
{
    const Outcome out = simulate(scenario, 2000000);
    std::string fault = out.fault;
    bool is_named = false;
    for (std::size_t r = 0; r < out.status.size() && fault.empty(); r++) {
        if (static_cast<int>(r) == scenario.freezes) continue;
        is_named = is_named || out.status[r] == Status::timed_out;
        if (!failed(out.status[r]))
            fault = "rank " + std::to_string(r) + " ended with: " + hier::to_string(out.status[r]);
    }
    if (fault.empty() && !is_named) fault = "nobody timed out";
    if (fault.empty() && out.elapsed < scenario.limits.watchdog.timeout) fault = "too early";
    return fault.empty() ? "" : fault + "; " + text_of(scenario);
}

const char* a_lost_connection_ends(Level level)
{
    for (const char* text : machines) {
        for (const Route route : all_routes) {
            Scenario scenario = slow(text, route, 5s);
            for (int rank = 0; rank < static_cast<int>(scenario.nodes.size()); rank++) {
                if (rank == 1) publish_at_once(scenario);
                scenario.sabotage = {rank, level, Call::put, 1, Sabotage::How::connection_lost};
                if (!simulate(scenario, 1000).has_struck) continue;  // the rank puts nothing
                const auto fault = fault_of_end(scenario);
                if (!fault.empty()) return keep(fault);
            }
        }
    }
    return is_logged("nothing has moved for 5 s (coll_hier_timeout)") ? nullptr : "no report";
}

void test_lost_chunk_on_the_rail(void**)
{
    lines.clear();
    expect_no_reason(a_lost_connection_ends(Level::rail));
    assert_true(is_logged("over the rail: 1 of 3 chunks have come"));
}

void test_lost_chunk_on_the_node(void**)
{
    lines.clear();
    expect_no_reason(a_lost_connection_ends(Level::node));
    assert_true(is_logged("over the node: "));
}

// A process stops in the middle of a call. In a published call on one node the others have all that
// they need.
const char* a_frozen_rank_ends_the_others()
{
    for (const char* text : machines) {
        for (const Route route : all_routes) {
            Scenario scenario = slow(text, route, 5s);
            for (int rank = 0; rank < static_cast<int>(scenario.nodes.size()); rank++) {
                scenario.freezes = rank;
                const auto fault = fault_of_end(scenario);
                if (!fault.empty())
                    return keep("rank " + std::to_string(rank) + " freezes: " + fault);
            }
        }
    }
    return nullptr;
}

void test_frozen_rank(void**) { expect_no_reason(a_frozen_rank_ends_the_others()); }

// ---- the call must not end

std::string fault_of_patience(const Scenario& scenario, int late)
{
    const Outcome out = simulate(scenario, 2000000);
    std::string fault = out.fault;
    for (const Status s : out.status) {
        if (s != Status::ok && fault.empty()) fault = hier::to_string(s);
    }
    return fault.empty()
               ? ""
               : fault + ", with rank " + std::to_string(late) + " late; " + text_of(scenario);
}

// Some ranks miss the late rank themselves. Others miss only ranks that miss the late one.
const char* a_late_rank_is_waited_for(std::chrono::seconds timeout)
{
    std::uint64_t seed = 0;
    for (const char* text : machines) {
        for (const Route route : all_routes) {
            Scenario scenario = slow(text, route, timeout);
            const auto ranks = scenario.nodes.size();
            for (std::size_t late = 0; late < ranks; late++) {
                scenario.weather.seed = ++seed;
                scenario.publish = seed % 2 == 0 ? Publish::none : Publish::some;
                scenario.late.assign(ranks, 0us);
                // The other ranks come one after the other, so that their heartbeats are not in
                // step.
                for (std::size_t r = 0; r < ranks; r++) scenario.late[r] = r * 170ms;
                scenario.late[late] = 4 * timeout + 1s;
                const auto fault = fault_of_patience(scenario, static_cast<int>(late));
                if (!fault.empty()) return keep(fault);
            }
        }
    }
    return nullptr;
}

void test_late_rank(void**) { expect_no_reason(a_late_rank_is_waited_for(5s)); }
void test_late_rank_and_short_timeout(void**) { expect_no_reason(a_late_rank_is_waited_for(1s)); }

// A job is suspended, and goes on.
const char* a_suspended_job_goes_on()
{
    std::uint64_t seed = 0;
    for (const char* text : machines) {
        for (const Route route : all_routes) {
            Scenario scenario = slow(text, route, 5s);
            const auto ranks = scenario.nodes.size();
            scenario.suspended_at = 2s;
            scenario.suspended_for = 1h;
            for (std::size_t late = 0; late < ranks; late++) {
                scenario.weather.seed = ++seed;
                scenario.publish = seed % 2 == 0 ? Publish::none : Publish::some;
                scenario.late.assign(ranks, 0us);
                scenario.late[late] = 3s;  // the others have nothing to do at that moment
                const auto fault = fault_of_patience(scenario, static_cast<int>(late));
                if (!fault.empty()) return keep(fault);
            }
        }
    }
    return nullptr;
}

void test_suspended_job(void**) { expect_no_reason(a_suspended_job_goes_on()); }

// The others wait for as long as the rank stays away. The log names the rank once.
void test_rank_that_never_comes(void**)
{
    lines.clear();
    Scenario scenario = slow("2,1,1", Route::ring, 5s);
    scenario.publish = Publish::all;
    scenario.late = {0us, 0us, 0us, 10h};
    scenario.pass = 1ms;
    const Outcome out = simulate(scenario, 300000);  // passes, five minutes of the clock
    const auto ended = std::count_if(out.status.begin(), out.status.end(),
                                     [](Status s) { return s != Status::in_progress; });
    const bool is_said = is_logged("still waiting: rank 3 has not entered the call after 5 s");
    const auto said = lines.size();
    lines.clear();
    assert_int_equal(ended, 0);
    assert_true(is_said);
    assert_in_range(said, 1, 3);  // from each rank that waits for rank 3 itself
}

// ---- bytes that move, and bytes that do not

// One put takes four times the time-out. Ranks that see no byte themselves hear that something moves.
const char* a_long_put_is_no_stall(Level level)
{
    for (const char* text : machines) {
        for (const Route route : all_routes) {
            Scenario scenario = slow(text, route, 1s);
            for (int rank = 0; rank < static_cast<int>(scenario.nodes.size()); rank++) {
                scenario.sabotage = {rank, level, Call::put, 1, Sabotage::How::streams, 4s};
                lines.clear();
                const auto fault = fault_of_patience(scenario, -1);
                if (!fault.empty()) return keep(fault);
                if (is_logged("nothing has moved")) return "a report";
            }
        }
    }
    return nullptr;
}

void test_long_put_on_the_rail(void**) { expect_no_reason(a_long_put_is_no_stall(Level::rail)); }
void test_long_put_on_the_node(void**) { expect_no_reason(a_long_put_is_no_stall(Level::node)); }

// A put stands still for three times the time-out, and goes on. Then the call ends well, unless the
// time-out is an error.
const char* a_put_that_stands_still(bool fails)
{
    for (const char* text : machines) {
        Scenario scenario = slow(text, Route::direct, 1s);
        scenario.limits.watchdog.fails = fails;
        for (const Level level : {Level::node, Level::rail}) {
            scenario.sabotage = {0, level, Call::put, 0, Sabotage::How::stands_still, 3s};
            if (!simulate(scenario, 1000).has_struck) continue;  // the rank puts nothing
            lines.clear();
            const auto fault = fails ? fault_of_end(scenario) : fault_of_patience(scenario, -1);
            if (!fault.empty()) return keep(fault);
            if (!is_logged("nothing has moved for 1 s")) return "no report";
            if (is_logged("moves again, after ") == fails) return "the end of the stall";
            if (!is_logged(" have gone")) return "no word of what has not gone";
        }
    }
    return nullptr;
}

void test_put_that_stands_still(void**) { expect_no_reason(a_put_that_stands_still(false)); }
void test_the_same_as_an_error(void**) { expect_no_reason(a_put_that_stands_still(true)); }

// timeout 0: no limit.
void test_no_timeout(void**)
{
    Scenario scenario = slow("1,1", Route::direct, 0s);
    scenario.sabotage = {0, Level::rail, Call::put, 0, Sabotage::How::connection_lost};
    scenario.pass = 1s;
    const Outcome out = simulate(scenario, 100000);
    const bool is_waiting = out.status[1] == Status::in_progress;
    assert_true(is_waiting);
}

int collect_logs(void**)
{
    set_log(HIER_LOG_ERROR, collect);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fake);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_chunk_on_the_rail),
        cmocka_unit_test(test_lost_chunk_on_the_node),
        cmocka_unit_test(test_frozen_rank),
        cmocka_unit_test(test_late_rank),
        cmocka_unit_test(test_late_rank_and_short_timeout),
        cmocka_unit_test(test_suspended_job),
        cmocka_unit_test(test_rank_that_never_comes),
        cmocka_unit_test(test_long_put_on_the_rail),
        cmocka_unit_test(test_long_put_on_the_node),
        cmocka_unit_test(test_put_that_stands_still),
        cmocka_unit_test(test_the_same_as_an_error),
        cmocka_unit_test(test_no_timeout),
    };
    return hier::test::run_cases(argc, argv, "executor_timeout", tests, collect_logs);
}
