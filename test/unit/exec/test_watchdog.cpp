// SPDX-License-Identifier: BSD-3-Clause
// The watchdog alone: a run that the test stops by hand, and a clock that the test moves on.
#include <string>
#include <vector>

#include "base/log.hpp"
#include "exec/watchdog.hpp"
#include "test/support/fake_network.hpp"
#include "test/support/machine.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using namespace std::chrono_literals;

constexpr auto timeout = 8s;
constexpr auto period = 1s;  // of the heartbeat

std::vector<std::string> lines;
void collect(int, const char* line) { lines.emplace_back(line); }

// Rank 0 of two nodes waits for rank 1 to enter, and then for two of its chunks.
Plan waiting_plan()
{
    Plan plan;
    Op op{};
    op.level = Level::rail;
    op.peer = 1;
    op.kind = Op::Kind::await_announced;
    plan.append(op);
    op.kind = Op::Kind::await_data;
    for (op.count = 1; op.count <= 2; op.count++) plan.append(op);
    return plan;
}

class Watched {
public:
    Watched() : program_(waiting_plan(), Topology(machine("1,1")), 0)
    {
        lines.clear();
        (void)rail_.begin({.sequence = 1, .send = {}, .receive = {}});
        run.begin(program_);
        watchdog_.begin();
    }

    void peer_enters()
    {
        run.cursors_of(Level::rail)[0].ready = 1;
        run.not_ready = 0;
    }
    void hear(std::uint32_t heartbeat) { group_.heartbeats[1] = Signal::encode(1, heartbeat); }
    std::uint32_t told() const { return Signal::count(group_.heartbeats[0], 1); }

    // Passes for so long, one each millisecond, or until the watchdog has an answer.
    Status pass(std::chrono::milliseconds time)
    {
        Status status = Status::ok;
        for (auto left = time; left > 0ms && status == Status::ok; left -= 1ms) {
            fake_now += 1ms;
            status = watchdog_.look();
        }
        return status;
    }

private:
    FakeNetwork network_{{}, std::nullopt};
    FakeGroup group_{2};
    FakeTransport rail_{network_, group_, Level::rail, 0, 0};
    Program program_;

public:
    Run run{nullptr, &rail_};

private:
    Watchdog watchdog_{run, {.timeout = timeout}};
};

const char* a_stall_ends_the_call()
{
    Watched watched;
    watched.peer_enters();
    if (watched.pass(timeout) != Status::ok || !lines.empty()) return "too early";
    if (watched.pass(1s) != Status::timed_out) return "the call goes on";
    if (lines.size() != 2) return "other lines than wanted";
    if (lines[0] != "nothing has moved for 8 s (coll_hier_timeout): 3 of 3 operations left, 0 puts "
                    "in flight")
        return keep(lines[0]);
    return lines[1] == "  rank 1 over the rail: 0 of 2 chunks have come" ? nullptr : keep(lines[1]);
}

void test_stall(void**) { expect_no_reason(a_stall_ends_the_call()); }

const char* movement_starts_the_time_anew()
{
    Watched watched;
    watched.peer_enters();
    if (watched.pass(timeout - 1s) != Status::ok) return "too early";
    watched.run.moved = true;
    if (watched.pass(1ms) != Status::ok) return "too early, in the pass that moved";
    watched.run.moved = false;
    return watched.pass(timeout - 1s) == Status::ok ? nullptr : "the movement does not count";
}

void test_movement(void**) { expect_no_reason(movement_starts_the_time_anew()); }

// The call goes on for as long as a peer is missing. The log says so once.
const char* a_late_peer_is_reported_once()
{
    Watched watched;
    if (watched.pass(5 * timeout) != Status::ok) return "the call ends";
    if (lines.size() != 1) return "not one line";
    const bool is_said = lines[0] == "still waiting: rank 1 has not entered the call after 8 s "
                                     "(coll_hier_timeout)";
    return is_said ? nullptr : keep(lines[0]);
}

void test_late_peer(void**) { expect_no_reason(a_late_peer_is_reported_once()); }

const char* the_heartbeat_grows_while_a_peer_is_missing()
{
    Watched watched;
    (void)watched.pass(10 * period);
    const std::uint32_t last = watched.told();
    if (last < 8 || last > 10) return keep(std::to_string(last) + " heartbeats in 10 periods");
    watched.peer_enters();
    (void)watched.pass(3 * period);
    return watched.told() == last ? nullptr : "it grows although nobody is missing";
}

void test_heartbeat(void**) { expect_no_reason(the_heartbeat_grows_while_a_peer_is_missing()); }

// Rank 1 misses somebody whom rank 0 does not know of.
const char* a_heartbeat_is_passed_on()
{
    Watched watched;
    watched.peer_enters();
    for (std::uint32_t beat = 1; beat < 6; beat++) {
        watched.hear(7 * beat);
        if (watched.pass(timeout - 2 * period) != Status::ok) return "the call ends";
        if (watched.told() != 7 * beat) return "it is not passed on";
    }
    return lines.empty() ? nullptr : keep(lines[0]);
}

void test_heartbeat_of_another_rank(void**) { expect_no_reason(a_heartbeat_is_passed_on()); }

// An hour passes between two passes.
const char* time_without_passes_does_not_count()
{
    Watched watched;
    watched.peer_enters();
    if (watched.pass(1s) != Status::ok) return "too early";
    fake_now += 1h;
    return watched.pass(timeout - 3s) == Status::ok ? nullptr : "the hour counts";
}

void test_suspended(void**) { expect_no_reason(time_without_passes_does_not_count()); }

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
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_movement),
        cmocka_unit_test(test_late_peer),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_heartbeat_of_another_rank),
        cmocka_unit_test(test_suspended),
    };
    return hier::test::run_cases(argc, argv, "watchdog", tests, collect_logs);
}
