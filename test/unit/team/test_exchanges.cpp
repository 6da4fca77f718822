// SPDX-License-Identifier: BSD-3-Clause
// How many messages a rank sends while its team is made, and what it asks the system again for the
// next team.
#include <string>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct CountingExchange {
    const hier_bootstrap& real;
    int count = 0;
    static int run(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                   std::size_t in_bytes, int from)
    {
        auto& self = *static_cast<CountingExchange*>(context);
        self.count++;
        return self.real.exchange(self.real.context, out, out_bytes, to, in, in_bytes, from);
    }
};

// Returns the messages, or a negative number if there is no team.
int messages_of(ForkedRank& self, const hier_config& config)
{
    CountingExchange counting{self.bootstrap()};
    hier_bootstrap bootstrap = self.bootstrap();
    bootstrap.context = &counting;
    bootstrap.exchange = CountingExchange::run;
    hier_team* team = nullptr;
    const int code = hier_team_create(&config, &bootstrap, &team);
    hier_team_destroy(team);
    return code == HIER_OK ? counting.count : -1;
}

std::string expect_equal(const char* what, int count, int wanted)
{
    return count == wanted ? "" : what + std::string(": ") + std::to_string(count);
}

// The team: one exchange of records, one vote on the groups, one exchange of rates, the last vote. The
// node: one exchange of addresses, one vote. Each takes log2(8) messages of a rank.
void test_on_one_node(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(8, [](ForkedRank& self) {
        hier_config config = config_for_tests();
        config.ranks_per_node = 0;
        return expect_equal("messages", messages_of(self, config), (4 + 2) * 3);
    }))));
}

// Every process tries CMA with every other one once, and times some copies.
void test_the_next_team_tries_cma_no_more(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [](ForkedRank& self) -> std::string {
        hier_config config = config_for_tests();
        config.ranks_per_node = 0;
        const int first = messages_of(self, config);
        const int tried = readv_calls + writev_calls;
        const int second = messages_of(self, config);
        if (first < 0 || first != second) return "a team is not made";
        if (tried != 2 * 4 + 8) return "tries: " + std::to_string(tried);
        return expect_equal("more tries", readv_calls + writev_calls, tried);
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_on_one_node),
        cmocka_unit_test(test_the_next_team_tries_cma_no_more),
    };
    return hier::test::run_cases(argc, argv, "exchanges", tests);
}
