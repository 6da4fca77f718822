// SPDX-License-Identifier: BSD-3-Clause
// The hazards of a rail, by name: a stale key, a lost chunk, a put that fails half-way. A signal
// before its data is in test_ucx_order. If the core cannot notice a hazard, the test notices it by
// the bytes.
#include <sys/mman.h>

#include <cstddef>
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/clock.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

hier_config config_of_chunks(int ranks_per_node = 1)
{
    hier_config config = config_for_tests();
    config.ranks_per_node = ranks_per_node;
    config.chunk_bytes = 32 << 10;
    return config;
}

bool is_caught(const Ends& ends)
{
    for (const auto& end : ends) {
        if (end.find("a wrong byte") != std::string::npos) return true;
    }
    return false;
}

std::string said(int code) { return hier_strerror(code) + (": " + ForkedRank::log_lines()); }

// ---- stale key

constexpr std::size_t max_bytes = 3 * 40000;

// Memory that is unmapped and mapped again at the same address.
class Again {
public:
    explicit Again(ForkedRank& self) : data_(map(nullptr))
    {
        ucx.registrations->watch(self.rank(), data_, max_bytes);
    }
    ~Again() { munmap(data_, max_bytes); }
    Again(const Again&) = delete;
    Again& operator=(const Again&) = delete;
    void renew()
    {
        munmap(data_, max_bytes);
        ucx.registrations->renew();
        data_ = map(data_);
    }
    std::byte* data() { return data_; }

private:
    static std::byte* map(std::byte* at)
    {
        void* mapped = mmap(at, max_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
        return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    }
    std::byte* data_;
};

// Between the calls the receive buffer stays or is replaced by another one at the same address. The
// size stays or changes, on all ranks or on some.
std::string meet_old_addresses(ForkedRank& self, int calls)
{
    constexpr std::size_t sizes[] = {40000, 40000, 9000, 40000};
    TeamRank team(self, config_of_chunks());
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    Again receive(self);
    std::string fault;
    for (int call = 0; call < calls && fault.empty(); call++) {
        const bool is_renewed = call % 4 != 1 && (call % 3 != 1 || self.rank() == 0);
        if (is_renewed) receive.renew();
        const std::size_t bytes = sizes[call % 4];
        std::vector<std::byte> send(bytes);
        const int code = team.call(bytes, send, receive.data(), fault);
        if (code != HIER_OK) fault = said(code);
    }
    if (fault.empty() && ucx.registrations->stale_puts() > 0) fault = "a put by a stale key";
    team.end();
    return fault.empty() ? ucx.leaks() : fault;
}

void test_no_put_by_a_stale_key(void**)
{
    Registrations registrations;
    expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
        ucx.registrations = &registrations;
        return meet_old_addresses(self, 24);
    }))));
}

// The test above can fail: if keys depend on the address alone, data goes nowhere.
// Fault: a put uses a stale key | an old key is kept | the check of the bytes sees it
void test_stale_key_is_caught(void**)
{
    Registrations registrations;
    const Ends ends = run_ranks(2, [&](ForkedRank& self) {
        ucx.registrations = &registrations;
        ucx.packs_old_keys = true;
        return meet_old_addresses(self, 4);
    });
    assert_true(is_caught(ends));
    assert_true(registrations.stale_puts() > 0);
}

// ---- chunk lost

constexpr std::size_t several_chunks = 200000;

// Rank 0's network changes in the second call. Makes all calls, even after an error, because the
// others make them, too. Returns the end of the last call, or the wrong bytes.
std::string call_over(ForkedRank& self, Lanes lanes, int ranks_per_node)
{
    TeamRank team(self, config_of_chunks(ranks_per_node));
    std::string fault;
    int code = team.created();
    for (int call = 0; call < 3 && code == HIER_OK; call++) {
        std::string wrong;
        if (call == 1 && self.rank() == 0) ucx.lanes = lanes;
        code = team.call(several_chunks, wrong);
        if (fault.empty()) fault = wrong;
    }
    ucx.lanes = Lanes::one;
    if (code != HIER_OK && team.start_only() != code) return "it takes another call";
    team.end();
    return fault.empty() ? hier_strerror(code) : fault;
}

// No protocol can notice this, because the signal says that the chunk is there.
// Fault: data is lost, its signal is not | a put is dropped | the check of the bytes sees it
void test_lost_data_is_caught(void**)
{
    for (const Lanes lanes : {Lanes::loses_data, Lanes::loses_one_chunk}) {
        const Ends ends = run_ranks(2, [&](ForkedRank& self) { return call_over(self, lanes, 1); });
        expect_no_reason(is_caught(ends) ? nullptr : keep(first_fault(ends)));
    }
}

// Every rank must get an error, and one rank must log that it gave up.
std::string fault_of(const Ends& ends)
{
    const std::string timeout = hier_strerror(HIER_ERR_TIMEOUT);
    bool is_named = false;
    for (std::size_t r = 0; r < ends.size(); r++) {
        is_named = is_named || ends[r] == timeout;
        if (ends[r] != timeout && ends[r] != hier_strerror(HIER_ERR_PEER))
            return "rank " + std::to_string(r) + ": " + ends[r];
    }
    return is_named ? "" : "nobody gives up";
}

// The signal does not come. The rank that waits for it gives up and logs what is missing. All
// others hear of that.
// Fault: a chunk and its signal are lost | puts are dropped | the time-out ends the call
void test_lost_chunk_ends_in_a_timeout(void**)
{
    for (const Lanes lanes : {Lanes::loses_chunks, Lanes::loses_signals}) {
        expect_no_reason(keep(fault_of(run_ranks(2, [&](ForkedRank& self) {
            const auto end = call_over(self, lanes, 1);
            const bool is_said = ForkedRank::is_logged("rank 0 over the rail: 0 of");
            return self.rank() == 0 || is_said ? end : ForkedRank::log_lines();
        }))));
        expect_no_reason(keep(
            fault_of(run_ranks(4, [&](ForkedRank& self) { return call_over(self, lanes, 2); }))));
    }
}

// ---- put that fails half-way

void meet(const ForkedRank& self) { (void)self.group().collect(0); }

// One put in the middle of the third call of rank `culprit` completes with an error.
std::string fail_half_way(ForkedRank& self, int culprit)
{
    TeamRank team(self, config_of_chunks(2));
    std::string wrong;
    int code = team.created();
    std::size_t before = 0, puts = 0;
    for (int call = 0; call < 2 && code == HIER_OK && wrong.empty(); call++) {
        before = ucx.calls(UcxCall::put);
        code = team.call(several_chunks, wrong);
        puts = ucx.calls(UcxCall::put) - before;
    }
    if (code != HIER_OK || !wrong.empty()) return "before: " + wrong + said(code);
    if (puts < 8) return "too few puts for a middle";
    meet(self);  // so that no rank is still in the call before
    if (self.rank() == culprit)
        ucx.fail_nth(UcxCall::put, static_cast<int>(puts) / 2, UcxFailure::later);
    code = team.call(several_chunks, wrong);
    if (self.rank() == culprit && !ucx.has_failed()) return "nothing failed";
    const int wanted = self.rank() == culprit ? HIER_ERR_TRANSPORT : HIER_ERR_PEER;
    // A rank that had all of its bytes by then hears of the failure in the next call.
    if (code == HIER_OK && wrong.empty() && self.rank() != culprit)
        code = team.call(several_chunks, wrong);
    if (code != wanted) return said(code);
    if (team.start_only() != wanted || team.start_only() != wanted) return "it takes another call";
    team.end();
    return ucx.leaks();
}

// Fault: a put fails half-way | part of it is written | no signal; an error on every rank
void test_put_that_fails_half_way(void**)
{
    for (const int culprit : {0, 3}) {
        expect_no_reason(keep(first_fault(
            run_ranks(4, [&](ForkedRank& self) { return fail_half_way(self, culprit); }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_no_put_by_a_stale_key),
        cmocka_unit_test(test_stale_key_is_caught),
        cmocka_unit_test(test_lost_data_is_caught),
        cmocka_unit_test(test_lost_chunk_ends_in_a_timeout),
        cmocka_unit_test(test_put_that_fails_half_way),
    };
    return hier::test::run_cases(argc, argv, "ucx_hazards", tests);
}
