// SPDX-License-Identifier: BSD-3-Clause
// Set-up of a team whose messages fail, on all ranks at once or on one rank before the others.
#include <algorithm>
#include <string>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

template <class Exchange> hier_bootstrap through(Exchange& exchange)
{
    hier_bootstrap bootstrap = exchange.real;
    bootstrap.context = &exchange;
    bootstrap.exchange = Exchange::run;
    return bootstrap;
}

struct FailingExchange {
    const hier_bootstrap& real;
    int left;  // exchanges before the first failure
    static int run(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                   std::size_t in_bytes, int from)
    {
        auto& self = *static_cast<FailingExchange*>(context);
        if (self.left-- <= 0) return 17;
        return self.real.exchange(self.real.context, out, out_bytes, to, in, in_bytes, from);
    }
};

// Afterwards the fallback module must not serve these ranks: messages of the set-up may still come.
std::string break_off(ForkedRank& self, int exchanges)
{
    FailingExchange failing{self.bootstrap(), exchanges};
    const hier_bootstrap bootstrap = through(failing);
    const hier_config config = config_for_tests();
    hier_team* team = nullptr;
    const int code = hier_team_create(&config, &bootstrap, &team);
    if (code == HIER_ERR_PEER && team == nullptr && failing.left < 0 &&
        ForkedRank::is_logged("an exchange among 2 ranks failed with code 17"))
        return "broken off";
    if (code != HIER_OK || failing.left < 0) return hier_strerror(code);
    hier_quiesce();
    hier_team_destroy(team);
    hier_finalize();
    return "";
}

// Fault: messages of set-up fail | each of them, in turn | no team; the module serves no call
void test_setup_that_breaks_off(void**)
{
    int broken_off = 0;
    for (std::string fault = "rank 0: broken off"; fault == "rank 0: broken off"; broken_off++) {
        const auto faults =
            run_ranks(2, [&](ForkedRank& self) { return break_off(self, broken_off); });
        assert_true(faults[0] == faults[1]);
        fault = first_fault(faults);
        if (fault != "rank 0: broken off") expect_no_reason(keep(fault));
    }
    assert_true(broken_off > 8);
}

// Exchange `number` is made on all ranks, and reported to rank 0 as a failure. Later exchanges fail
// on all ranks.
struct OneSidedExchange {
    const hier_bootstrap& real;
    int number;
    int next = 0;
    static int run(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                   std::size_t in_bytes, int from)
    {
        auto& self = *static_cast<OneSidedExchange*>(context);
        const int number = self.next++;
        if (number > self.number) return 17;
        const int code =
            self.real.exchange(self.real.context, out, out_bytes, to, in, in_bytes, from);
        return number == self.number && self.real.rank == 0 ? 17 : code;
    }
};

// Once any rank has connected, no rank destroys a worker that has not connected. UCX may have taken
// in half a connection there.
std::string break_off_on_one(ForkedRank& self, int number)
{
    OneSidedExchange failing{self.bootstrap(), number};
    const hier_bootstrap bootstrap = through(failing);
    const hier_config config = config_for_tests();
    hier_team* team = nullptr;
    if (hier_team_create(&config, &bootstrap, &team) == HIER_OK) return "it is made";
    hier_quiesce();
    const std::size_t connected = ucx.calls(UcxCall::ep_create);
    hier_finalize();
    struct End {
        std::size_t connections, destroyed;
    };
    const auto ends = self.group().collect(End{connected, ucx.destroyed_workers});
    const auto any = [&](bool (*is_so)(const End&)) {
        return std::any_of(ends.begin(), ends.end(), is_so);
    };
    if (!any([](const End& e) { return e.connections == 0; })) return "all have connected";
    const bool is_met = any([](const End& e) { return e.connections > 0; });
    const bool is_gone = any([](const End& e) { return e.connections == 0 && e.destroyed > 0; });
    return is_met && is_gone ? "a worker is destroyed" : "";
}

// Fault: messages of set-up fail | each of them, in turn | no team; the module serves no call
void test_setup_that_breaks_off_on_one(void**)
{
    int number = 0;
    for (std::string fault; fault.empty(); number++) {
        fault = first_fault(
            run_ranks(3, [&](ForkedRank& self) { return break_off_on_one(self, number); }));
        if (fault != "rank 0: all have connected") expect_no_reason(keep(fault));
    }
    assert_true(number > 16);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_setup_that_breaks_off),
        cmocka_unit_test(test_setup_that_breaks_off_on_one),
    };
    return hier::test::run_cases(argc, argv, "set-up broken off", tests);
}
