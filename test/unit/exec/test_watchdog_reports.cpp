// SPDX-License-Identifier: BSD-3-Clause
// What the watchdog reports, and when, and what follows.
#include <algorithm>
#include <string>

#include "test/support/watched.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr const char* owed = "  rank 1 over the rail: 0 of 2 chunks have come, 0 of 1 have gone";

std::size_t reports()
{
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const auto& line) {
        return line.find("nothing has moved for") != std::string::npos;
    }));
}

const char* a_stall_ends_the_call()
{
    Watched watched(true);
    watched.peer_enters();
    if (watched.pass(timeout) != Status::ok || !lines.empty()) return "too early";
    if (watched.pass(1s) != Status::timed_out) return "the call goes on";
    if (lines.size() != 2) return "other lines than wanted";
    if (lines[0] !=
        "rank 0: nothing has moved for 8 s (coll_hier_timeout): 4 of 4 operations left, "
        "0 puts in flight; the call fails")
        return keep(lines[0]);
    return lines[1] == owed ? nullptr : keep(lines[1]);
}

void test_stall_that_is_an_error(void**) { expect_no_reason(a_stall_ends_the_call()); }

const char* a_stall_is_reported_once_a_minute()
{
    Watched watched;
    watched.peer_enters();
    if (watched.pass(timeout) != Status::ok || !lines.empty()) return "too early";
    if (watched.pass(1s) != Status::ok) return "the call ends";
    if (lines.size() != 2) return "other lines than wanted";
    if (lines[0] !=
        "rank 0: nothing has moved for 8 s (coll_hier_timeout): 4 of 4 operations left, "
        "0 puts in flight; the call goes on")
        return keep(lines[0]);
    if (lines[1] != owed) return keep(lines[1]);
    if (watched.pass(58s) != Status::ok || reports() != 1) return "a second report within a minute";
    if (watched.pass(2s) != Status::ok || reports() != 2) return "no second report";
    if (lines[2].find("nothing has moved for 68 s") == std::string::npos) return keep(lines[2]);
    if (watched.pass(10min) != Status::ok) return "the call ends";
    return reports() == 12 ? nullptr : keep(std::to_string(reports()) + " reports in all");
}

void test_stall(void**) { expect_no_reason(a_stall_is_reported_once_a_minute()); }

const char* the_end_of_a_stall_is_said()
{
    Watched watched;
    watched.peer_enters();
    (void)watched.pass(timeout - 1s);
    watched.move_once();
    if (!lines.empty()) return "movement is told, although nobody had missed it";
    (void)watched.pass(timeout + 3500ms);
    lines.clear();
    watched.move_once();
    watched.move_once();
    if (lines.size() != 1) return "not one line";
    if (lines[0] != "rank 0: the call moves again, after 11 s") return keep(lines[0]);
    // Within a minute nothing is said, neither of the next stall nor of its end.
    (void)watched.pass(timeout + 4s);
    watched.begin_again();
    (void)watched.pass(timeout + 4s);
    watched.move_once();
    if (lines.size() != 1) return keep(lines[1]);
    (void)watched.pass(1min);
    return reports() == 1 ? nullptr : "the next minute has no report";
}

void test_end_of_a_stall(void**) { expect_no_reason(the_end_of_a_stall_is_said()); }

// The bytes of a call may move between other ranks only. Their heartbeats grow.
const char* a_heartbeat_ends_a_stall()
{
    Watched watched;
    watched.peer_enters();
    (void)watched.pass(timeout + 4s);
    lines.clear();
    watched.hear(1);
    (void)watched.pass(2 * period);
    if (lines.size() != 1) return "not one line";
    return lines[0].find("the call moves again") != std::string::npos ? nullptr : keep(lines[0]);
}

void test_heartbeat_ends_a_stall(void**) { expect_no_reason(a_heartbeat_ends_a_stall()); }

const char* a_report_names_some_peers_only()
{
    constexpr int ranks = 40;
    Plan plan;
    std::string nodes = "1";
    for (int peer = 1; peer < ranks; peer++) {
        nodes += ",1";
        Op op{};
        op.level = Level::rail;
        op.kind = Op::Kind::await_data;
        op.count = 1;
        op.peer = peer;
        plan.append(op);
    }
    FakeNetwork network{{}, std::nullopt};
    FakeGroup group{ranks};
    FakeTransport rail{network, group, Level::rail, 0, 0};
    (void)rail.begin({.sequence = 1, .send = {}, .receive = {}});
    const Program program(std::move(plan), Topology(machine(nodes.c_str())), 0);
    Run run(nullptr, &rail);
    Watchdog watchdog(run, {.timeout = timeout});
    run.begin(program);
    watchdog.begin();
    lines.clear();
    for (int i = 0; i < 10000; i++) {
        fake_now += 1ms;
        (void)watchdog.look();
    }
    if (lines.size() != 1 + 16 + 1) return keep(std::to_string(lines.size()) + " lines");
    return lines.back() == "  there may be others" ? nullptr : keep(lines.back());
}

void test_many_peers(void**) { expect_no_reason(a_report_names_some_peers_only()); }

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
        cmocka_unit_test(test_stall_that_is_an_error),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_end_of_a_stall),
        cmocka_unit_test(test_heartbeat_ends_a_stall),
        cmocka_unit_test(test_many_peers),
    };
    return hier::test::run_cases(argc, argv, "watchdog_reports", tests, collect_logs);
}
