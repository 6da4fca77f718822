// SPDX-License-Identifier: BSD-3-Clause
// Each operation of each rank fails once. All ranks end with an error, within finitely many passes,
// and no rank ends a call while transfers are in flight.
#include <string>

#include "test/support/machine.hpp"
#include "test/support/simulation.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

Status expected(const Sabotage& sabotage)
{
    if (sabotage.call == Call::begin && sabotage.rank % 2 == 1) return Status::out_of_memory;
    return sabotage.call == Call::ready ? Status::mismatch : Status::transport_error;
}

// "" or what is wrong. `strikes`: was there such an operation at all?
std::string fault_of(const Scenario& scenario, bool& strikes)
{
    const Outcome out = simulate(scenario);
    strikes = out.has_struck;
    std::string fault = out.fault;
    const auto culprit = static_cast<std::size_t>(scenario.sabotage->rank);
    for (std::size_t r = 0; r < out.status.size() && fault.empty() && strikes; r++) {
        // In the last call a rank may have finished before the other one failed.
        const bool may_be_well = out.calls_done[culprit] == scenario.calls - 1 && r != culprit;
        const bool is_well = out.status[r] == Status::ok && out.calls_done[r] == scenario.calls;
        const Status wanted = r == culprit ? expected(*scenario.sabotage) : Status::peer_failed;
        if (out.status[r] != wanted && !(may_be_well && is_well))
            fault = "rank " + std::to_string(r) + " ended with: " + hier::to_string(out.status[r]);
    }
    return fault.empty() ? "" : fault + "; " + text_of(scenario);
}

// Makes one run for each operation. Returns how many operations failed.
std::size_t fail_each(Scenario scenario, Sabotage sabotage, std::string& fault)
{
    for (bool strikes = true; strikes && fault.empty(); sabotage.nth++) {
        scenario.sabotage = sabotage;
        scenario.weather.seed++;
        fault = fault_of(scenario, strikes);
        // These calls come in every pass. The first ones and a few of the rest are enough.
        if (sabotage.nth > 6 && (sabotage.call == Call::ready || sabotage.call == Call::progress))
            sabotage.nth += 17;
    }
    return sabotage.nth - 1;
}

std::size_t failures[call_kinds];

const char* every_failure_ends(Sabotage::How how, Bounce bounce, Publish publish)
{
    for (const char* text : {"2", "3", "1,1", "1,1,1", "2,1", "2,2", "3,1", "2,1,2"}) {
        for (const Route route : all_routes) {
            Scenario scenario{.nodes = machine(text), .route = route};
            scenario.calls = 2;
            scenario.bounce = bounce;
            scenario.publish = publish;
            for (const Call call : every_call) {
                const bool is_transfer =
                    call == Call::put || call == Call::copy || call == Call::drain;
                if (how == Sabotage::How::fails_later && !is_transfer) continue;
                for (int rank = 0; rank < static_cast<int>(scenario.nodes.size()); rank++) {
                    for (const Level level : {Level::node, Level::rail}) {
                        std::string fault;
                        failures[static_cast<std::size_t>(call)] +=
                            fail_each(scenario, {rank, level, call, 0, how}, fault);
                        if (!fault.empty()) return keep(fault);
                    }
                }
            }
        }
    }
    return nullptr;
}

// A sweep that never meets one of the calls would prove nothing.
bool met(std::initializer_list<Call> calls)
{
    bool all = true;
    for (const Call call : calls) all = all && failures[static_cast<std::size_t>(call)] > 100;
    return all;
}

// Fault: the network refuses a put | a fake network | an error on every rank
void test_refused(void**)
{
    std::fill(std::begin(failures), std::end(failures), 0);
    expect_no_reason(every_failure_ends(Sabotage::How::refused, Bounce::none, Publish::none));
    expect_no_reason(every_failure_ends(Sabotage::How::refused, Bounce::some, Publish::all));
    assert_true(met({Call::begin, Call::announce, Call::ready, Call::put, Call::copy, Call::drain,
                     Call::progress}));
}

// Fault: a put fails after its start | a fake network | an error on every rank
void test_fails_later(void**)
{
    std::fill(std::begin(failures), std::end(failures), 0);
    expect_no_reason(every_failure_ends(Sabotage::How::fails_later, Bounce::none, Publish::none));
    expect_no_reason(every_failure_ends(Sabotage::How::fails_later, Bounce::some, Publish::all));
    assert_true(met({Call::put, Call::copy, Call::drain}));
}

// Both sides know of the broken connection, and no time-out is set. A rank that already had all
// data that was due from the other side ends well. Other ranks may end well too.
const char* a_broken_connection_ends()
{
    std::size_t struck = 0;
    for (const char* text : {"1,1", "1,1,1", "2,1", "2,2", "3,1", "2,1,2"}) {
        for (const Route route : all_routes) {
            Scenario scenario{.nodes = machine(text), .route = route};
            scenario.limits.watchdog.timeout = std::chrono::seconds(0);
            const int ranks = static_cast<int>(scenario.nodes.size());
            for (int i = 0; i < ranks * 12; i++) {
                scenario.weather.seed++;
                scenario.sabotage = {i % ranks, Level::rail, Call::put,
                                     static_cast<std::size_t>(i / ranks),
                                     Sabotage::How::connection_broken};
                const Outcome out = simulate(scenario);
                std::string fault = out.fault;
                bool is_named = false;
                for (const Status s : out.status) {
                    is_named = is_named || s == Status::transport_error;
                    if (s == Status::in_progress) fault = "it never ends";
                }
                if (out.has_struck && fault.empty() && !is_named) fault = "nobody says why";
                if (!fault.empty()) return keep(fault + "; " + text_of(scenario));
                struck += out.has_struck ? 1 : 0;
            }
        }
    }
    return struck > 200 ? nullptr : "it hardly ever strikes";
}

// Fault: a connection breaks in a call | a fake network | an error on every rank
void test_broken_connection(void**) { expect_no_reason(a_broken_connection_ends()); }

// One process dies, and all other ranks fail. On one node they fail soon. With a network they wait
// for data that may still come. The simulation reports bytes that come to a rank that has left.
const char* a_death_ends_the_call()
{
    std::size_t struck = 0;
    for (const char* text : {"2", "3", "1,1", "2,1", "2,2", "3,1", "2,1,2"}) {
        for (const Route route : all_routes) {
            Scenario scenario{.nodes = machine(text), .route = route};
            const int ranks = static_cast<int>(scenario.nodes.size());
            for (int i = 0; i < ranks * 24; i++) {
                scenario.weather.seed++;
                scenario.publish = i % 2 == 0 ? Publish::none : Publish::some;
                scenario.bounce = i % 3 == 0 ? Bounce::some : Bounce::none;
                scenario.dies = i % ranks;
                scenario.dies_at = std::chrono::microseconds(40 * i);
                scenario.told_after = std::chrono::microseconds(i % 4 == 0 ? 1000 : 10);
                const Outcome out = simulate(scenario, 2000000);
                std::string fault = out.fault;
                for (int r = 0; r < ranks && fault.empty(); r++) {
                    const Status s = out.status[static_cast<std::size_t>(r)];
                    if (r == scenario.dies || s == Status::ok) continue;
                    struck++;
                    if (s != Status::peer_failed) fault = hier::to_string(s);
                }
                const bool is_one_node = scenario.nodes.back() == 0;
                if (is_one_node && out.elapsed > scenario.limits.drain)
                    fault = "it waits for a dead rank";
                if (!fault.empty()) return keep(fault + "; " + text_of(scenario));
            }
        }
    }
    return struck > 1000 ? nullptr : "it hardly ever strikes";
}

// Fault: a rank dies in a call | a fake network | the call ends on the others
void test_death(void**) { expect_no_reason(a_death_ends_the_call()); }

// A rank says in the middle of a call that it takes part in no further one. The call fails there, and nobody waits or
// writes for ever. Other ranks may end well.
const char* a_refusal_ends_the_call()
{
    std::size_t struck = 0;
    for (const char* text : {"2", "3", "1,1", "2,1", "2,2", "3,1", "2,1,2"}) {
        for (const Route route : all_routes) {
            Scenario scenario{.nodes = machine(text), .route = route};
            const int ranks = static_cast<int>(scenario.nodes.size());
            for (int i = 0; i < ranks * 24; i++) {
                scenario.weather.seed++;
                scenario.publish = i % 2 == 0 ? Publish::none : Publish::some;
                scenario.bounce = i % 3 == 0 ? Bounce::some : Bounce::none;
                scenario.refuses = i % ranks;
                scenario.refuses_at = 1 + i / ranks;
                const Outcome out = simulate(scenario);
                std::string fault = out.fault;
                for (int r = 0; r < ranks && fault.empty(); r++) {
                    const Status s = out.status[static_cast<std::size_t>(r)];
                    if (s == Status::in_progress) fault = "it never ends";
                    if (r == scenario.refuses && s == Status::out_of_memory) struck++;
                    if (r == scenario.refuses || s == Status::ok) continue;
                    if (s != Status::peer_failed) fault = hier::to_string(s);
                }
                if (!fault.empty()) return keep(fault + "; " + text_of(scenario));
            }
        }
    }
    return struck > 1000 ? nullptr : "it hardly ever strikes";
}

// Fault: a rank refuses the next call | while one runs | that one fails on it, and ends everywhere
void test_refusal(void**) { expect_no_reason(a_refusal_ends_the_call()); }

// One rank passes a size that differs from all others.
const char* a_mismatch_is_seen_by_all()
{
    for (const char* text : {"2", "3", "1,1", "1,1,1", "2,2", "3,1"}) {
        for (const Route route : all_routes) {
            Scenario scenario{.nodes = machine(text), .route = route};
            for (std::size_t odd = 0; odd < 2 * scenario.nodes.size(); odd++) {
                scenario.publish = odd % 2 == 0 ? Publish::none : Publish::all;
                scenario.bytes_of_rank.assign(scenario.nodes.size(), 7);
                scenario.bytes_of_rank[odd / 2] = 8;
                const Outcome out = simulate(scenario);
                if (!out.fault.empty()) return keep(out.fault + "; " + text_of(scenario));
                bool is_named = false;
                for (const Status s : out.status) {
                    is_named = is_named || s == Status::mismatch;
                    if (s != Status::mismatch && s != Status::peer_failed)
                        return keep("a rank ended with: " + std::string(hier::to_string(s)) + "; " +
                                    text_of(scenario));
                }
                if (!is_named) return keep("nobody says why; " + text_of(scenario));
            }
        }
    }
    return nullptr;
}

// Fault: ranks pass different sizes | other sizes on a fake network | an error on every rank
void test_mismatch(void**) { expect_no_reason(a_mismatch_is_seen_by_all()); }

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fake);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_refusal),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fails_later), cmocka_unit_test(test_broken_connection),
        cmocka_unit_test(test_death),       cmocka_unit_test(test_mismatch),
    };
    return hier::test::run_cases(argc, argv, "executor_failures", tests);
}
