// SPDX-License-Identifier: BSD-3-Clause
// A team keeps the programs of the last sizes, and not one for each size that it ever had.
#include <stdexcept>
#include <string>
#include <vector>

#include "test/support/team_rank.hpp"
#include "test/support/wrapped/allocations.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t most = 64;  // programs are kept

// Does a call of this size make a program? Nothing else in a call allocates.
bool is_made(TeamRank& team, std::size_t bytes)
{
    const std::vector<std::byte> send(bytes);
    std::vector<std::byte> receive(bytes);
    const std::size_t before = allocations;
    const int code = team.start_raw(send.data(), receive.data(), bytes);
    const bool is_made = allocations > before;
    if (team.finish(code) != HIER_OK) throw std::runtime_error("a call fails");
    return is_made;
}

void test_the_least_recently_used_goes(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank& self) -> std::string {
        TeamRank team(self, config_for_tests());
        if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
        for (std::size_t bytes = 1; bytes <= most; bytes++) {
            if (!is_made(team, bytes)) return "none is made";
        }
        for (std::size_t bytes = most; bytes > 0; bytes--) {
            if (is_made(team, bytes)) return "fewer are kept";
        }
        if (!is_made(team, most + 1)) return "none is made for another size";
        if (is_made(team, 1)) return "the one that was made first has gone";
        if (is_made(team, most - 1)) return "one that is used more often than it is made has gone";
        return is_made(team, most) ? "" : "more are kept";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_recently_used_goes),
    };
    return hier::test::run_cases(argc, argv, "team_programs", tests);
}
