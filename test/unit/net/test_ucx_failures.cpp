// SPDX-License-Identifier: BSD-3-Clause
// Every UCX call of one rank fails, each in turn, from set-up to the last call. All ranks must end
// with an error, and every object of UCX must be destroyed.
#include <algorithm>
#include <string>
#include <vector>

#include "net/ucx/ucx_worker.hpp"
#include "team/group.hpp"
#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/allocations.hpp"
#include "test/support/wrapped/clock.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct Failure {
    UcxCall call;
    UcxFailure how;
    const char* transports;  // in the core's configuration
    int rank;
    bool has_a_way_out = false;  // the core may do without, so that the call succeeds
};

// Makes the calls of one of two ranks. The culprit's `nth` call of UCX fails. More calls follow, so
// that a rank that had all its data by then hears of the failure.
std::string make_calls(ForkedRank& self, const Failure& failure, int nth, bool is_culprit)
{
    constexpr int calls = 4;
    constexpr std::size_t sizes[calls] = {100, 40000, 40000, 100};
    hier_config config = config_for_tests();
    config.net_transports = failure.transports;
    const bool is_of_small_calls =
        failure.call == UcxCall::message || failure.call == UcxCall::worker_flush;
    config.eager_bytes = is_of_small_calls ? 1000 : 0;
    ucx.transports = "tcp";
    if (is_culprit) ucx.fail_nth(failure.call, nth, failure.how);
    TeamRank team(self, config);
    int code = team.created();
    std::string wrong;
    // In the last call nothing more fails, so that the other rank hears of the failure.
    for (int i = 0; i < calls && code == HIER_OK && wrong.empty(); i++) {
        code = team.call(sizes[i], wrong);
        if (i == calls - 2 && code == HIER_OK && is_culprit && !ucx.has_failed())
            ucx.fail_nth(failure.call, 0, failure.how);
    }
    const bool is_last_call = code == HIER_OK;
    team.end();
    if (!wrong.empty()) return wrong;
    // UCX may abort when half a connection is destroyed, so the process may keep it.
    if (code == HIER_ERR_SETUP && ucx.calls(UcxCall::ep_create) > 0) {
        ucx.contexts = ucx.workers = ucx.requests = 0;
    }
    const auto leaks = ucx.leaks();
    if (!leaks.empty()) return leaks;
    if (!is_culprit)
        return is_last_call                                      ? "well"
               : code == HIER_ERR_SETUP || code == HIER_ERR_PEER ? ""
                                                                 : hier_strerror(code);
    if (!ucx.has_failed()) return "no such call";
    if (code == HIER_OK && failure.has_a_way_out) return "did without";
    return code == HIER_ERR_SETUP || code == HIER_ERR_TRANSPORT
               ? ""
               : std::string("ended with: ") + hier_strerror(code);
}

// Returns the fault, or "". Each failure has a run of its own; `runs` gets their number.
std::string fault_of(const Failure& failure, int first, int& runs)
{
    for (int nth = first; nth < 200; nth++) {
        const Ends ends = run_ranks(2, [&](ForkedRank& self) {
            return make_calls(self, failure, nth, self.rank() == failure.rank);
        });
        const auto culprit = static_cast<std::size_t>(failure.rank);
        if (ends[culprit] == "no such call" && ends[1 - culprit] == "well") return "";
        if (ends[culprit] == "did without" && ends[1 - culprit] == "well" && ++runs > 0) continue;
        const auto fault = first_fault(ends);
        if (!fault.empty()) {
            return fault + "; number " + std::to_string(nth) + " of " + to_string(failure.call) +
                   " on rank " + std::to_string(failure.rank) +
                   (failure.how == UcxFailure::later ? " fails later" : " fails");
        }
        runs++;
    }
    return "it never ends";
}

const char* each_fails(UcxFailure how, std::initializer_list<UcxCall> calls,
                       const char* transports = "tcp", int first = 1, bool has_a_way_out = false)
{
    for (const UcxCall call : calls) {
        int runs = 0;
        const auto fault = fault_of({call, how, transports, 0, has_a_way_out}, first, runs);
        if (!fault.empty()) return keep(fault);
        if (runs == 0) return keep(std::string("never called: ") + to_string(call));
    }
    return nullptr;
}

// Fault: a call of UCX fails in the set-up | each of them, in turn | no team on any rank
void test_setup(void**)
{
    expect_no_reason(each_fails(UcxFailure::at_once,
                                {UcxCall::config_read, UcxCall::init, UcxCall::worker_create,
                                 UcxCall::get_address, UcxCall::ep_create}));
}

// Fault: memory cannot be registered or unpacked | calls of UCX fail, in turn | an error on every rank
void test_memory(void**)
{
    expect_no_reason(
        each_fails(UcxFailure::at_once, {UcxCall::mem_map, UcxCall::rkey_pack}, "tcp", 1, true));
    expect_no_reason(each_fails(UcxFailure::for_good, {UcxCall::mem_map, UcxCall::rkey_pack}));
    expect_no_reason(each_fails(UcxFailure::at_once, {UcxCall::rkey_unpack}));
}

// A buffer that UCX cannot register, for example read-only pages of a file. The receive buffer is
// registered first. Over RDMA the send buffer is registered second.
void test_memory_that_cannot_be_registered(void**)
{
    for (const int nth : {1, 2}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_tests();
            config.ranks_per_node = 1;
            config.net_transports = "rc";
            config.net_devices = "lo";
            config.log_level = HIER_LOG_INFO;
            ucx.transports = "tcp";
            TeamRank team(self, config);
            if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
            std::string wrong;
            for (int call = 0; call < 6; call++) {
                const bool is_refused = self.rank() == 0 && call % 2 == 0;
                if (is_refused) ucx.fail_nth(UcxCall::mem_map, nth, UcxFailure::at_once);
                const int code = team.call(100000, wrong);
                if (code != HIER_OK) return hier_strerror(code);
                if (!wrong.empty()) return wrong;
                if (is_refused && !ucx.has_failed()) return "nothing was refused";
            }
            team.end();
            const auto lines = ForkedRank::log_lines();
            const auto first = lines.find("UCX cannot register a buffer");
            const bool is_told_once =
                first != std::string::npos &&
                lines.find("cannot register", first + 10) == std::string::npos;
            if (is_told_once != (self.rank() == 0)) return "it says: " + lines;
            return ucx.leaks();
        }))));
    }
}

// Fault: a transfer of UCX fails | at once or later, each in turn | an error on every rank
void test_puts(void**) { expect_no_reason(each_fails(UcxFailure::at_once, {UcxCall::put})); }

// Fault: a transfer of UCX fails | at once or later, each in turn | an error on every rank
void test_puts_that_fail_later(void**)
{
    expect_no_reason(each_fails(UcxFailure::later, {UcxCall::put}));
}

// The messages of small calls.
// Fault: a transfer of UCX fails | at once or later, each in turn | an error on every rank
void test_messages(void**)
{
    for (const UcxFailure how : {UcxFailure::at_once, UcxFailure::later})
        expect_no_reason(each_fails(how, {UcxCall::message}));
}

// A worker flush may have failed because of a peer of another team. Messages to peers of this team
// show their own failures.
void test_a_worker_flush_that_fails_harms_nobody(void**)
{
    for (const UcxFailure how : {UcxFailure::at_once, UcxFailure::later}) {
        const Failure failure{UcxCall::worker_flush, how, "tcp", 0};
        const Ends ends = run_ranks(
            2, [&](ForkedRank& self) { return make_calls(self, failure, 1, self.rank() == 0); });
        const Ends wanted = {"ended with: success", "well"};
        expect_no_reason(ends == wanted ? nullptr : keep(first_fault(ends)));
    }
}

// Rank 1's message of one team comes to rank 0 while rank 0 is in calls of the other team. Each team
// has its own connection, so the message may come after several of them. No exception may pass
// through UCX, which hands the message over.
std::string take_a_message_without_memory(ForkedRank& self)
{
    constexpr std::size_t bytes = 777;
    hier_config config = config_for_tests();
    config.eager_bytes = 1000;
    TeamRank early(self, config), other(self, config);
    std::vector<std::byte> send(bytes), receive(2 * bytes);
    std::string wrong;
    refused_bytes = self.rank() == 0 ? bytes : 0;
    (void)self.group().collect(0);  // the message may come at once
    int code = self.rank() == 1 ? early.start_raw(send.data(), receive.data(), bytes) : HIER_OK;
    int other_code = HIER_OK;
    do {
        other_code = other.call(100, wrong);
    } while (other_code == HIER_OK && self.group().collect(refusals).front() == 0);
    refused_bytes = 0;
    code =
        self.rank() == 1 ? early.finish(code) : early.call_raw(send.data(), receive.data(), bytes);
    other.leave();
    early.end();
    if (other_code != HIER_OK) return "the other team: " + wrong + hier_strerror(other_code);
    if (self.rank() == 1) return code == HIER_ERR_PEER ? "" : hier_strerror(code);
    if (refusals != 1) return std::to_string(refusals) + " refusals";
    return code == HIER_ERR_MEMORY ? ucx.leaks() : hier_strerror(code);
}

// Fault: no memory for a message that comes early | an allocation fails | an error on every rank
void test_no_memory_for_a_message(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, take_a_message_without_memory))));
}

// A call of a new size allocates memory. Each of these allocations fails in turn.
std::string start_without_memory(ForkedRank& self, std::size_t nth)
{
    constexpr std::size_t bytes = 60000;
    TeamRank team(self, config_for_tests());
    std::string wrong;
    if (team.call(50000, wrong) != HIER_OK) return "the first call: " + wrong;
    // Without this a failure could reach a rank that is still in the first call.
    (void)self.group().collect(nth);
    std::vector<std::byte> send(bytes), receive(2 * bytes);
    refused_number = self.rank() == 1 ? nth : 0;
    int code = team.start_raw(send.data(), receive.data(), bytes);
    refused_number = 0;
    code = team.finish(code);
    team.end();
    if (self.rank() == 1 && refusals == 0) return "no such allocation";
    const int wanted = self.rank() == 1 ? HIER_ERR_MEMORY : HIER_ERR_PEER;
    return code == wanted ? ucx.leaks() : std::string("ended with: ") + hier_strerror(code);
}

void test_no_memory_for_a_call(void**)
{
    for (std::size_t nth = 1; nth < 100; nth++) {
        const Ends ends =
            run_ranks(2, [&](ForkedRank& self) { return start_without_memory(self, nth); });
        if (ends[1] == "no such allocation") {
            assert_true(nth > 3);
            return;
        }
        expect_no_reason(keep(first_fault(ends)));
    }
}

// The core orders signals by a flush over transports that it does not know, and by a fence over
// RDMA. The bytes go over TCP in both cases. The first puts belong to set-up, whose bounds are
// long.
// Fault: a transfer of UCX fails | at once or later, each in turn | an error on every rank
void test_flushes(void**)
{
    expect_no_reason(each_fails(UcxFailure::at_once, {UcxCall::flush}, "tcp,self"));
    expect_no_reason(each_fails(UcxFailure::at_once, {UcxCall::put}, "tcp,self", 3));
}

void test_flushes_that_fail_later(void**)
{
    expect_no_reason(each_fails(UcxFailure::later, {UcxCall::flush}, "tcp,self"));
    expect_no_reason(each_fails(UcxFailure::later, {UcxCall::put}, "tcp,self", 3));
}

// Fault: a transfer of UCX fails | at once or later, each in turn | an error on every rank
void test_fences(void**)
{
    if (!orders_by_weak_fence(ucx_version())) return;  // this UCX gets flushes
    expect_no_reason(each_fails(UcxFailure::at_once, {UcxCall::fence}, "rc,dc"));
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_setup),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_that_cannot_be_registered),
        cmocka_unit_test(test_puts),
        cmocka_unit_test(test_puts_that_fail_later),
        cmocka_unit_test(test_flushes),
        cmocka_unit_test(test_flushes_that_fail_later),
        cmocka_unit_test(test_fences),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_no_memory_for_a_message),
        cmocka_unit_test(test_no_memory_for_a_call),
        cmocka_unit_test(test_a_worker_flush_that_fails_harms_nobody),
    };
    return hier::test::run_cases(argc, argv, "ucx_failures", tests);
}
