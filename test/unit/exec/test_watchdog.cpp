// SPDX-License-Identifier: BSD-3-Clause
// What counts as movement, and what a rank tells the others.
#include <string>

#include "test/support/watched.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// A large put comes in parts. Its sender's heartbeat may wait behind them.
const char* parts_are_movement()
{
    Watched watched(true);
    watched.peer_enters();
    for (int i = 0; i < 5; i++) {
        watched.get_a_part();
        if (watched.pass(timeout - period) != Status::ok) return "the call ends";
    }
    return watched.told() == 5 ? nullptr : "the others do not hear of it";
}

void test_parts(void**) { expect_no_reason(parts_are_movement()); }

// The other ranks hear that something moves here. The clock is read rarely.
const char* movement_is_told()
{
    Watched watched;
    watched.peer_enters();
    watched.run.moved = true;
    const auto reads = fake_reads;
    (void)watched.pass(10 * period);
    if (fake_reads - reads > 10000 / 50) return "the clock is read often";
    const std::uint32_t last = watched.told();
    if (last < 8 || last > 10) return keep(std::to_string(last) + " heartbeats in 10 periods");
    watched.run.moved = false;
    (void)watched.pass(2 * period);
    const std::uint32_t after = watched.told();
    (void)watched.pass(3 * period);
    return after <= last + 1 && watched.told() == after ? nullptr : "it grows without movement";
}

void test_heartbeat_of_movement(void**) { expect_no_reason(movement_is_told()); }

const char* movement_starts_the_time_anew()
{
    Watched watched(true);
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
    Watched watched(true);
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
    Watched watched(true);
    watched.peer_enters();
    for (std::uint32_t beat = 1; beat < 6; beat++) {
        watched.hear(7 * beat);
        if (watched.pass(timeout - 2 * period) != Status::ok) return "the call ends";
        if (watched.told() != 7 * beat) return "it is not passed on";
    }
    return lines.empty() ? nullptr : keep(lines[0]);
}

void test_heartbeat_of_another_rank(void**) { expect_no_reason(a_heartbeat_is_passed_on()); }

// Many ranks may be between this one and the rank that misses somebody.
const char* the_first_heartbeat_goes_on_at_once()
{
    constexpr std::chrono::milliseconds whole = period;
    Watched watched;
    watched.peer_enters();
    (void)watched.pass(whole / 2);
    watched.hear(1);
    (void)watched.pass(whole / 4);
    if (watched.told() != 1) return "the first one waits";
    watched.hear(2);
    (void)watched.pass(whole / 4);
    if (watched.told() != 1) return "the second one comes at once, too";
    (void)watched.pass(whole);
    return watched.told() == 2 ? nullptr : "the second one does not come";
}

void test_first_heartbeat(void**) { expect_no_reason(the_first_heartbeat_goes_on_at_once()); }

// An hour passes between two passes.
const char* time_without_passes_does_not_count()
{
    Watched watched(true);
    watched.peer_enters();
    if (watched.pass(1s) != Status::ok) return "too early";
    fake_now += 1h;
    return watched.pass(timeout - 3s) == Status::ok ? nullptr : "the hour counts";
}

void test_suspended(void**) { expect_no_reason(time_without_passes_does_not_count()); }

// Tells how often somebody has asked for a peer's death.
struct Asked final : FakeTransport {
    using FakeTransport::FakeTransport;
    bool has_ended(int peer) override
    {
        questions++;
        return FakeTransport::has_ended(peer);
    }
    bool has_to_take(int) override { return is_to_take; }
    int questions = 0;
    bool is_to_take = false;
};

// Rank 1 of the node has died. Rank 0 waits for its chunk, or has got it, or gets it in the pass behind
// the look that finds the process gone: the rank has put its chunk and ended meanwhile. Or rank 0 has got it, and
// rank 1 has still to take one.
enum class Chunk { missing, here, late, not_taken };

const char* a_dead_rank_of_the_node(Chunk chunk)
{
    Plan plan;
    Op op{};
    op.level = Level::node;
    op.kind = Op::Kind::await_data;
    op.peer = 1;
    op.count = 1;
    plan.append(op);
    FakeNetwork network{{}, std::nullopt};
    FakeGroup group{2};
    Asked node{network, group, Level::node, 0, 0};
    (void)node.begin({.sequence = 1, .send = {}, .receive = {}});
    const Program program(std::move(plan), Topology(machine("2")), 0);
    Run run(&node, nullptr);
    Watchdog watchdog(run, {.timeout = timeout});
    run.begin(program);
    watchdog.begin();
    lines.clear();
    node.dead = 1;
    node.is_to_take = chunk == Chunk::not_taken;
    Status status = Status::ok;
    for (auto time = 0ms; time < 3 * period && status == Status::ok; time += 1ms) {
        fake_now += 1ms;
        if (chunk == Chunk::here || node.is_to_take || (chunk == Chunk::late && node.questions > 0))
            run.cursors_of(Level::node)[0].await = 1;
        status = watchdog.look();
    }
    if (chunk == Chunk::here || chunk == Chunk::late)
        return status == Status::ok && lines.empty() ? nullptr : "it is missed";
    if (status != Status::peer_failed) return "the call goes on";
    return lines.size() == 1 && lines[0] == "the process of rank 1 has ended" ? nullptr
                                                                              : "not said";
}

void test_dead_rank(void**)
{
    for (const Chunk chunk : {Chunk::missing, Chunk::here, Chunk::late, Chunk::not_taken})
        expect_no_reason(a_dead_rank_of_the_node(chunk));
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
        cmocka_unit_test(test_parts),           cmocka_unit_test(test_heartbeat_of_movement),
        cmocka_unit_test(test_movement),        cmocka_unit_test(test_late_peer),
        cmocka_unit_test(test_heartbeat),       cmocka_unit_test(test_heartbeat_of_another_rank),
        cmocka_unit_test(test_suspended),       cmocka_unit_test(test_dead_rank),
        cmocka_unit_test(test_first_heartbeat),
    };
    return hier::test::run_cases(argc, argv, "watchdog", tests, collect_logs);
}
