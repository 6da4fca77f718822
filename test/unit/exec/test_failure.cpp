// SPDX-License-Identifier: BSD-3-Clause
// The end after an error alone: a run that has announced and waits for data, on a node and on a
// rail.
#include <string>
#include <vector>

#include "base/log.hpp"
#include "exec/failure.hpp"
#include "test/support/fake_network.hpp"
#include "test/support/machine.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using namespace std::chrono_literals;

constexpr auto drain = 5s;

std::vector<std::string> lines;
void collect(int, const char* line) { lines.emplace_back(line); }

// Rank 0 of nodes {0,1} {2}: a chunk is due from rank 1 inside the node, and one from rank 2.
Plan waiting_plan()
{
    Plan plan;
    Op op{};
    op.kind = Op::Kind::await_data;
    op.count = 1;
    op.level = Level::node;
    op.peer = 1;
    plan.append(op);
    op.level = Level::rail;
    op.peer = 2;
    plan.append(op);
    return plan;
}

class FailedRun {
public:
    FailedRun() : program_(waiting_plan(), Topology(machine("2,1")), 0)
    {
        lines.clear();
        for (FakeTransport* t : {&node_, &rail_, &node_peer_, &rail_peer_}) {
            (void)t->begin({.sequence = 1, .send = {}, .receive = {memory_, sizeof memory_, {}}});
            (void)t->announce(Op::every_peer);
        }
        run_.begin(program_);
        failure.begin();
    }

    bool is_told() const
    {
        return node_group_.failure != Status::ok && rail_group_.failure != Status::ok;
    }
    bool has_stopped() const
    {
        return node_group_.lanes[1][0].stopped && rail_group_.lanes[1][0].stopped;
    }
    static void stop_peer(FakeTransport& peer)
    {
        peer.raise(Status::peer_failed);
        (peer.stop)();  // CMocka 2 has a macro of this name
    }
    void stop_node_peer() { stop_peer(node_peer_); }
    void stop_rail_peer() { stop_peer(rail_peer_); }
    // The first rule that was broken on the way.
    const std::string& fault() const { return network_.fault(); }

private:
    FakeNetwork network_{{}, std::nullopt};
    FakeGroup node_group_{2}, rail_group_{3};
    FakeTransport node_{network_, node_group_, Level::node, 0, 0};
    FakeTransport rail_{network_, rail_group_, Level::rail, 0, 0};
    FakeTransport node_peer_{network_, node_group_, Level::node, 1, 1};
    FakeTransport rail_peer_{network_, rail_group_, Level::rail, 2, 2};
    std::byte memory_[4];
    Program program_;
    Run run_{&node_, &rail_};

public:
    Failure failure{run_, drain};
};

const char* the_first_error_counts_and_all_are_told()
{
    FailedRun run;
    if (run.failure.is_raised()) return "raised before there was an error";
    run.failure.raise(Status::mismatch);
    run.failure.raise(Status::transport_error);
    if (!run.failure.is_raised() || run.failure.status() != Status::mismatch)
        return "not the first error";
    return run.is_told() ? keep(run.fault()) : "a peer was not told";
}

void test_raise(void**) { expect_no_reason(the_first_error_counts_and_all_are_told()); }

const char* the_run_ends_when_both_peers_have_stopped()
{
    FailedRun run;
    run.failure.raise(Status::mismatch);
    if (run.failure.has_ended()) return "nobody has stopped";
    if (!run.has_stopped()) return "this rank has not stopped";
    run.stop_node_peer();
    if (run.failure.has_ended()) return "the rail peer has not stopped";
    run.stop_rail_peer();
    if (!run.failure.has_ended()) return "both have stopped";
    return lines.empty() ? keep(run.fault()) : keep(lines[0]);
}

void test_rest(void**) { expect_no_reason(the_run_ends_when_both_peers_have_stopped()); }

const char* the_run_ends_at_the_bound()
{
    FailedRun run;
    run.failure.raise(Status::mismatch);
    fake_now += drain - 1ms;
    if (run.failure.has_ended()) return "too early";
    fake_now += 1ms;
    if (!run.failure.has_ended()) return "too late";
    if (lines.size() != 1) return "not one line";
    const bool is_said = lines[0] == "transfers may still be in flight after a failure: the "
                                     "buffers of this call are not safe to reuse";
    return is_said ? nullptr : keep(lines[0]);
}

void test_bound(void**) { expect_no_reason(the_run_ends_at_the_bound()); }

// Inside the node the writes of a dead process have ended. On a network they may be on their way.
const char* dead_ranks_are_awaited_on_the_rail_alone()
{
    FailedRun run;
    run.failure.raise(Status::peer_failed);
    run.failure.note_dead({false, true, true});
    if (run.failure.has_ended()) return "the dead rail peer is not awaited";
    run.stop_rail_peer();
    return run.failure.has_ended() ? nullptr : "the dead node peer is awaited";
}

void test_dead_ranks(void**) { expect_no_reason(dead_ranks_are_awaited_on_the_rail_alone()); }

const char* a_rank_that_refuses_tells_all_and_stops()
{
    FailedRun run;
    run.failure.refuse(Status::out_of_memory);
    if (!run.is_told()) return "a peer was not told";
    if (run.failure.is_raised()) return "no run has failed";
    return run.has_stopped() ? keep(run.fault()) : "it has not stopped";
}

void test_refuse(void**) { expect_no_reason(a_rank_that_refuses_tells_all_and_stops()); }

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
        cmocka_unit_test(test_raise),  cmocka_unit_test(test_rest),
        cmocka_unit_test(test_bound),  cmocka_unit_test(test_dead_ranks),
        cmocka_unit_test(test_refuse),
    };
    return hier::test::run_cases(argc, argv, "failure", tests, collect_logs);
}
