// SPDX-License-Identifier: BSD-3-Clause
// Calls that are prepared once and started again and again, through the C interface.
#include <array>
#include <string>
#include <vector>

#include "test/support/team_rank.hpp"
#include "test/support/wrapped/allocations.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using Form = TeamRank::Form;

hier_config config_of_one_node()
{
    hier_config config = config_for_tests();
    config.ranks_per_node = 0;
    return config;
}

std::string fault_of(int code, const std::string& wrong)
{
    return code == HIER_OK ? wrong
                           : std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
}

// Such a call does not end in its start.
constexpr std::size_t large = 300000;

// ---- starts

// Small, published, and large; each rank starts them in the same order, with other calls in between.
constexpr std::array<std::size_t, 3> sizes = {8, 5000, large};
constexpr std::array<Form, 3> forms = {Form::plain, Form::in_place, Form::blocks};

std::string start_in_turns(ForkedRank& self, int ranks_per_node)
{
    hier_config config = config_for_tests();
    config.ranks_per_node = ranks_per_node;
    TeamRank team(self, config);
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    std::vector<TeamRank::Prepared> calls;
    for (const std::size_t bytes : sizes)
        for (const Form form : forms)
            if (team.prepare(bytes, form, calls.emplace_back()) != HIER_OK) return "not prepared";
    std::string fault;
    for (int round = 0; round < 4 && fault.empty(); round++) {
        for (std::size_t i = 0; i < calls.size() && fault.empty(); i++) {
            std::string wrong;
            fault = fault_of(team.call(calls[i], wrong), wrong);
            if (i % 2 == 0 && fault.empty()) fault = fault_of(team.call(700 + i, wrong), wrong);
        }
    }
    return fault;
}

// ranks, ranks per node
constexpr int shapes[][2] = {{2, 0}, {4, 0}, {2, 1}, {4, 2}, {5, 2}};

void test_starts_in_turns(void**)
{
    for (const auto& shape : shapes) {
        expect_no_reason(keep(first_fault(run_ranks(
            shape[0], [&](ForkedRank& self) { return start_in_turns(self, shape[1]); }))));
    }
}

// The program of the prepared call is dropped meanwhile.
std::string start_after_many_others(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    if (team.prepare(100, Form::plain, call) != HIER_OK) return "not prepared";
    std::string fault;
    for (int round = 0; round < 2 && fault.empty(); round++) {
        std::string wrong;
        fault = fault_of(team.call(call, wrong), wrong);
        for (std::size_t bytes = 200; bytes < 270 && fault.empty(); bytes++)
            fault = fault_of(team.call(bytes, wrong), wrong);
        if (fault.empty()) fault = fault_of(team.call(call, wrong), wrong);
    }
    return fault;
}

void test_the_program_may_be_dropped(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, start_after_many_others))));
}

std::string use_again(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    const hier_request* first = nullptr;
    std::string fault;
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{5000}, std::size_t{100}, large}) {
        for (const Form form : forms) {
            if (team.prepare(bytes, form, call) != HIER_OK) return "not prepared";
            if (first == nullptr) first = call.request;
            if (call.request != first) return "another request";
            for (int i = 0; i < 3 && fault.empty(); i++) {
                std::string wrong;
                fault = fault_of(team.call(call, wrong), wrong);
            }
        }
    }
    return fault;
}

void test_a_request_is_used_for_other_calls(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, use_again))));
}

// ---- what a start leaves out

// Where blocks are named, all that is prepared anew allocates. A small call would leave the executor's memory to a later
// start, which does not find all blocks.
std::string count_allocations(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    if (team.prepare(large, Form::blocks, call) != HIER_OK) return "not prepared";
    for (int i = 0; i < 4; i++) {
        const std::size_t before = allocations;
        const int code = team.start(call, HIER_CALLER);
        const std::size_t made = allocations - before;
        if (team.finish(code) != HIER_OK) return "a call fails: " + ForkedRank::log_lines();
        if (i == 0 && made == 0) return "the first start allocates nothing";
        if (i > 1 && made > 0) return "a later start allocates";
    }
    return "";
}

void test_later_starts_prepare_nothing(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, count_allocations))));
}

// ---- small calls that end in their start

// The others have shown their blocks when the last one comes.
std::string come_last_in_turns(ForkedRank& self)
{
    const Group group = self.group();
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (const Form form : forms) {
        TeamRank::Prepared call;
        if (team.prepare(40, form, call) != HIER_OK) return "not prepared";
        for (int last = 0; last < self.size(); last++) {
            const bool is_last = self.rank() == last;
            std::string wrong;
            int started = HIER_IN_PROGRESS;
            if (is_last) (void)group.collect(0);
            const int code = team.call(call, wrong, [&](int first) {
                started = first;
                if (!is_last) (void)group.collect(0);
            });
            if (code != HIER_OK || !wrong.empty()) return fault_of(code, wrong);
            if (is_last != (started == HIER_OK))
                return "a start ends with " + std::to_string(started);
        }
    }
    return "";
}

void test_who_comes_last_has_ended(void**)
{
    for (const int ranks : {2, 4})
        expect_no_reason(keep(first_fault(run_ranks(ranks, come_last_in_turns))));
}

// ---- errors

std::string start_while_it_runs(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    if (team.prepare(0, Form::plain, call) != HIER_ERR_ARGUMENT) return "no bytes are taken";
    if (team.prepare(large, Form::plain, call) != HIER_OK) return "not prepared";
    const int code = team.start(call, HIER_CALLER);
    if (code != HIER_IN_PROGRESS) return "not started";
    if (team.start(call, HIER_CALLER) != HIER_ERR_ARGUMENT) return "started while it runs";
    TeamRank::Prepared other = call;
    if (team.prepare(200, Form::plain, other) != HIER_ERR_ARGUMENT) return "changed while it runs";
    if (team.finish(code) != HIER_OK) return "the call fails: " + ForkedRank::log_lines();
    std::string wrong;
    return fault_of(team.call(call, wrong), wrong);
}

void test_a_running_call_is_not_started(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, start_while_it_runs))));
}

// Rank 1 refuses its second start.
std::string start_on_a_broken_team(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    std::string wrong;
    if (team.prepare(100, Form::plain, call) != HIER_OK) return "not prepared";
    const int first = team.call(call, wrong);
    if (first != HIER_OK) return fault_of(first, wrong);
    (void)self.group().collect(0);  // a refusal would end the first call, too
    if (self.rank() == 1) {
        (void)team.refuse();
    } else if (team.call(call, wrong) != HIER_ERR_PEER) {
        return "the failure is not heard";
    }
    for (int i = 0; i < 2; i++)
        if (team.start(call, HIER_CALLER) >= HIER_OK) return "a broken team takes the call";
    return "";
}

void test_a_broken_team_starts_nothing(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, start_on_a_broken_team))));
}

// ---- who moves the call

std::string hand_the_call_over(ForkedRank& self)
{
    TeamRank team(self, config_of_one_node());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    TeamRank::Prepared call;
    if (team.prepare(large, Form::plain, call) != HIER_OK) return "not prepared";
    for (int i = 0; i < 3; i++) {
        if (team.start(call, HIER_CALLER) != HIER_IN_PROGRESS) return "not started";
        for (int pass = 0; pass < 100; pass++) (void)hier_progress();
        if (hier_test(call.request) != HIER_IN_PROGRESS) return "moved by others";
        team.hand_over();
        const bool is_over = await([&] {
            (void)hier_progress();
            return hier_test(call.request) != HIER_IN_PROGRESS;
        });
        if (!is_over) return "not moved by others";
    }
    return "";
}

void test_others_move_a_call_that_is_handed_over(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, hand_the_call_over))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_in_turns),
        cmocka_unit_test(test_the_program_may_be_dropped),
        cmocka_unit_test(test_a_request_is_used_for_other_calls),
        cmocka_unit_test(test_later_starts_prepare_nothing),
        cmocka_unit_test(test_who_comes_last_has_ended),
        cmocka_unit_test(test_a_running_call_is_not_started),
        cmocka_unit_test(test_a_broken_team_starts_nothing),
        cmocka_unit_test(test_others_move_a_call_that_is_handed_over),
    };
    return hier::test::run_cases(argc, argv, "team_prepared", tests);
}
