// SPDX-License-Identifier: BSD-3-Clause
// Each allocation of one rank fails once: while a team is made, while a call goes on, and when the
// team ends. All ranks get the same answer, and no rank is left waiting.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/allocations.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr int victim = 1;
constexpr const char* enough = "no such allocation";

hier_config config_of(int ranks_per_node)
{
    hier_config config = config_for_tests();
    config.ranks_per_node = ranks_per_node;
    return config;
}

// "" or what is wrong. `is_through`: the victim has made the team with fewer allocations.
std::string make_team(ForkedRank& self, const hier_config& config, std::size_t nth,
                      bool& is_through)
{
    refusals = 0;
    refused_number = self.rank() == victim ? nth : 0;
    TeamRank team(self, config);
    refused_number = 0;
    const auto codes = self.group().collect(team.created());
    const auto all_refusals = self.group().collect(refusals);
    is_through = all_refusals[victim] == 0;
    const bool are_equal = std::count(codes.begin(), codes.end(), codes[0]) == self.size();
    if (!are_equal || (is_through && codes[0] != HIER_OK))
        return format("allocation %zu: ends with %s, on rank 0 with %s", nth,
                      hier_strerror(team.created()), hier_strerror(codes[0]));
    if (codes[0] != HIER_OK) {
        team.leave();
        return "";
    }
    std::string wrong;
    int code = team.call(20000, wrong);
    if (code == HIER_OK && wrong.empty()) code = team.call(64, wrong);  // published inside a node
    team.leave();
    self.group().collect(0);
    return code == HIER_OK
               ? wrong
               : format("allocation %zu: a call ends with %s", nth, hier_strerror(code));
}

// As in MPI_Finalize: no rank calls UCX when others have gone.
void end_process(ForkedRank& self)
{
    self.group().collect(0);
    ForkedRank::while_waiting(nullptr);
    hier_quiesce();
    self.group().collect(0);
    hier_finalize();
}

// The first team of a process, and a later one, which finds much already there.
// Fault: an allocation fails | each of them, in turn | no team on any rank, or an error on every rank
void test_making_a_team(void**)
{
    struct Layout {
        int ranks, ranks_per_node;
        std::size_t step;  // only every so many allocations: the others are similar
    };
    for (const Layout layout : {Layout{3, 0, 1}, {2, 1, 1}, {4, 2, 11}}) {
        const hier_config config = config_of(layout.ranks_per_node);
        for (const bool is_first : {true, false}) {
            if (!is_first && layout.ranks_per_node == 1) continue;
            std::size_t nth = 1;
            for (bool is_over = false; !is_over; nth += layout.step) {
                const Ends ends = run_ranks(layout.ranks, [&](ForkedRank& self) -> std::string {
                    bool is_through = false;
                    std::string fault;
                    if (!is_first) fault = make_team(self, config, 0, is_through);
                    if (fault.empty()) fault = make_team(self, config, nth, is_through);
                    end_process(self);
                    return fault.empty() && is_through ? enough : fault;
                });
                is_over = ends[0] == enough;
                if (!is_over) expect_no_reason(keep(first_fault(ends)));
            }
            assert_true(nth > 40);
        }
    }
}

// A call that has begun. Data that has failed to come must not count as arrived.
// Fault: an allocation fails | each of them, in turn | no team on any rank, or an error on every rank
void test_progress(void**)
{
    constexpr std::size_t bytes = 1 << 20;
    for (std::size_t nth = 1; nth < 60; nth++) {
        const Ends ends = run_ranks(4, [&](ForkedRank& self) -> std::string {
            hier_config config = config_of(2);
            config.depth = 16;
            config.chunk_bytes = 64 << 10;
            TeamRank team(self, config);
            std::vector<std::byte> send(bytes), receive(4 * bytes);
            std::fill(send.begin(), send.end(), static_cast<std::byte>(self.rank() + 1));
            int code = team.start_raw(send.data(), receive.data(), bytes);
            refused_number = self.rank() == victim ? nth : 0;
            code = team.finish(code);
            refused_number = 0;
            const auto all_refusals = self.group().collect(refusals);
            const auto codes = self.group().collect(code);
            team.end();
            for (std::size_t r = 0; r < 4 && code == HIER_OK; r++) {
                const std::byte value = static_cast<std::byte>(r + 1);
                const auto from = receive.begin() + static_cast<std::ptrdiff_t>(r * bytes);
                if (std::count(from, from + bytes, value) != bytes) return "wrong bytes";
            }
            if (all_refusals[victim] == 0 && code == HIER_OK) return enough;
            const bool is_told = codes[victim] == HIER_ERR_MEMORY || codes[victim] == HIER_OK;
            return is_told ? ""
                           : std::string("the victim ends with ") + hier_strerror(codes[victim]);
        });
        if (std::count(ends.begin(), ends.end(), enough) == std::ssize(ends)) {
            assert_true(nth > 3);
            return;
        }
        expect_no_reason(keep(first_fault(ends)));
    }
}

// The start of a call with blocks that differ, which are copied. The others must not wait for a rank
// that cannot.
// Fault: an allocation fails | each of them, in turn | no team on any rank, or an error on every rank
std::size_t refused_next = 0;
void test_start_with_blocks(void**)
{
    const std::vector<hier_block> blocks = {{0, 3000}, {3000, 100}, {3100, 5000}};
    for (std::size_t nth = 1; nth < 400; nth++) {
        const Ends ends = run_ranks(3, [&](ForkedRank& self) -> std::string {
            TeamRank team(self, config_of(1));
            std::string wrong;
            if (const int code = team.call(20000, wrong); code != HIER_OK)
                return format("%zu: the call before ends with %s: ", nth, hier_strerror(code)) +
                       ForkedRank::log_lines();
            self.group().collect(0);  // nobody is in that call any more
            refused_next = self.rank() == victim ? nth : 0;
            refusals = 0;
            const int code = team.call_blocks(
                blocks, wrong, [] { refused_number = refused_next; }, [] { refused_number = 0; });
            const auto all_refusals = self.group().collect(refusals);
            const auto codes = self.group().collect(code);
            team.end();
            if (!wrong.empty()) return wrong;
            const bool has_worked = std::count(codes.begin(), codes.end(), HIER_OK) == 3;
            if (all_refusals[victim] == 0) return has_worked ? enough : "a call failed";
            const bool are_told = std::count(codes.begin(), codes.end(), HIER_OK) == 0;
            return has_worked || are_told ? "" : "some ranks have an error, and some have none";
        });
        if (std::count(ends.begin(), ends.end(), enough) == std::ssize(ends)) {
            assert_true(nth > 10);
            return;
        }
        expect_no_reason(keep(first_fault(ends)));
    }
    fail_msg("there is no end of allocations");
}

// Fault: an allocation fails | each of them, in turn | no team on any rank, or an error on every rank
void test_end(void**)
{
    for (std::size_t nth = 1; nth <= 3; nth++) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            TeamRank team(self, config_of(1));
            std::string wrong;
            if (team.call(20000, wrong) != HIER_OK) return "the call: " + wrong;
            self.group().collect(0);
            refused_number = self.rank() == victim ? nth : 0;
            team.leave();
            refused_number = 0;
            end_process(self);
            return "";
        }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_making_a_team),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_start_with_blocks),
        cmocka_unit_test(test_end),
    };
    return hier::test::run_cases(argc, argv, "no_memory", tests);
}
