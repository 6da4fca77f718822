// SPDX-License-Identifier: BSD-3-Clause
// gdr: every UCX call fails in turn, and calls must not allocate.
#include <string>

#include "net/ucx/ucx_worker.hpp"
#include "test/support/gdr_rank.hpp"
#include "test/support/wrapped/allocations.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// A run may end with an error on both ranks. If the memory could be staged, it may also end well.
std::string make_calls(ForkedRank& self, UcxCall call, UcxFailure how, int nth)
{
    if (self.rank() == 0) ucx.fail_nth(call, nth, how);
    GdrRank rank(self);
    int code = rank.team.created();
    std::string wrong;
    for (int i = 0; i < 3 && code == HIER_OK && wrong.empty(); i++)
        code = rank.team.call(shard, rank.send, rank.receive, wrong);
    const bool is_setup = code == HIER_ERR_SETUP;
    rank.team.end();
    if (!wrong.empty()) return wrong;
    // Half a connection may stay: see test_ucx_failures.
    if (is_setup && ucx.calls(UcxCall::ep_create) > 0)
        ucx.contexts = ucx.workers = ucx.requests = 0;
    if (const auto leaks = ucx.leaks(); !leaks.empty()) return leaks;
    if (self.rank() == 0 && !ucx.has_failed()) return "no such call";
    const bool may_be = code == HIER_OK || is_setup || code == HIER_ERR_TRANSPORT ||
                        (self.rank() == 1 && code == HIER_ERR_PEER);
    return may_be ? "" : std::string("ended with: ") + hier_strerror(code);
}

const char* each_fails(UcxCall call, UcxFailure how, int first = 1)
{
    for (int nth = first; nth < 200; nth++) {
        const Ends ends =
            run_gdr(2, [&](ForkedRank& self) { return make_calls(self, call, how, nth); });
        if (ends[0] == "no such call")
            return nth > first ? nullptr : keep(std::string("never: ") + to_string(call));
        if (const auto fault = first_fault(ends); !fault.empty())
            return keep(fault + "; number " + std::to_string(nth) + " of " + to_string(call));
    }
    return "it never ends";
}

// Fault: UCX fails with device memory | each call, in turn | staged memory, or an error on every rank
void test_setup_and_memory_calls_fail(void**)
{
    for (const UcxCall call : {UcxCall::context_query, UcxCall::ep_create, UcxCall::mem_map,
                               UcxCall::rkey_pack, UcxCall::rkey_unpack})
        expect_no_reason(each_fails(call, UcxFailure::at_once));
}

// The calls before belong to set-up, whose bounds are long: see test_ucx_failures.
// Fault: UCX fails with device memory | each call, in turn | staged memory, or an error on every rank
void test_transfers_fail(void**)
{
    expect_no_reason(each_fails(UcxCall::get, UcxFailure::at_once));
    expect_no_reason(each_fails(UcxCall::get, UcxFailure::later));
    const bool has_fences = orders_by_weak_fence(ucx_version());
    expect_no_reason(each_fails(has_fences ? UcxCall::fence : UcxCall::flush, UcxFailure::at_once));
    expect_no_reason(each_fails(UcxCall::put, UcxFailure::at_once, 3));
    expect_no_reason(each_fails(UcxCall::put, UcxFailure::later, 3));
}

// After the first calls with a buffer nothing is allocated.
void test_calls_do_not_grow_memory(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        constexpr int calls = 200;
        ucx.hides_landings = false;  // shadows would allocate
        GdrRank rank(self);
        std::size_t before = 0;
        for (int i = 0; i < calls; i++) {
            if (i == 20) before = allocations;
            if (const auto fault = rank.call(); !fault.empty()) return fault;
        }
        const std::size_t made = allocations - before;
        if (allocations == 0) return "nothing is counted";
        return made <= calls / 10 ? "" : std::to_string(made) + " allocations";
    }))));
}

// Set-up allocates the device memory that a flush needs, because an allocation waits for all work
// of the device.
void test_calls_take_no_device_memory(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        const auto before = hip_sim_live("allocations");
        if (const auto fault = call_some(rank); !fault.empty()) return fault;
        const auto after = hip_sim_live("allocations");
        return after == before ? "" : std::to_string(after - before) + " allocations in calls";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_setup_and_memory_calls_fail),
        cmocka_unit_test(test_transfers_fail),
        cmocka_unit_test(test_calls_do_not_grow_memory),
        cmocka_unit_test(test_calls_take_no_device_memory),
    };
    return hier::test::run_cases(argc, argv, "ucx_gdr_failures", tests);
}
