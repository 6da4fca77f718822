// SPDX-License-Identifier: BSD-3-Clause
// Large blocks of two ranks, which the other rank copies out of their owner's memory.
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "node/host/node_publish.hpp"
#include "test/support/block_publisher.hpp"
#include "test/support/forked.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t large = 100000;  // more than is copied through shared memory

// Calls with blocks that are lent, in parts and at once, and with blocks that are copied.
std::string run_calls(BlockPublisher& me, std::uint64_t& call)
{
    std::string fault;
    for (const std::size_t size : {large, std::size_t{8}, (std::size_t{9} << 20) + 3, large + 1}) {
        if (fault.empty()) fault = me.run(++call, 1, size);
    }
    return fault;
}

void test_calls(void**)
{
    for (const bool are_displaced : {false, true}) {
        for (const auto mode : {Writev::works, Writev::interrupted}) {
            expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
                BlockPublisher me(self, make_whole_transport(self));
                if (are_displaced) me.displace();
                readv_mode = mode;
                std::uint64_t call = 0;
                std::string fault;
                for (int round = 0; round < 5 && fault.empty(); round++) {
                    const int before = readv_calls;
                    fault = run_calls(me, call);
                    if (fault.empty() && readv_calls < before + 5) fault = "a block is not lent";
                }
                return fault;
            }))));
        }
    }
}

// The kernel refuses memory of one rank or of both, from the beginning or in the middle of a block, in
// some calls and not in others. The blocks come all the same.
int reads_before_refusal;
Writev refusal;

void test_memory_that_cannot_be_read(void**)
{
    for (const bool are_displaced : {false, true}) {
        for (const auto mode : {Writev::faults, Writev::is_refused}) {
            expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
                BlockPublisher me(self, make_whole_transport(self));
                if (are_displaced) me.displace();
                std::uint64_t call = 0;
                std::string fault;
                for (int round = 0; round < 9 && fault.empty(); round++) {
                    const bool is_culprit = round % 3 == 2 || round % 3 == self.rank();
                    reads_before_refusal = is_culprit ? round / 3 : -1;
                    before_readv = [] {
                        if (reads_before_refusal-- == 0) readv_mode = refusal;
                    };
                    refusal = mode;
                    readv_mode = Writev::works;
                    fault = run_calls(me, call);
                }
                return fault;
            }))));
        }
    }
}

// A rank has answered that it has the block, and its call begins anew. The owner uses its block again.
void test_a_block_is_taken_once(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        const auto meet = [&] { (void)self.group().collect(0); };
        if (self.rank() == 1) {
            if (failed(me.begin(1, 1, large)) || failed(me.put(0))) return "it does not begin";
            meet();
            meet();  // rank 0 has taken the block, and waits for its own
            if (!me.gets_back(1)) return "the block never comes back";
            me.change_own();
            meet();
            std::string fault = me.take_all();
            me.transport().end();
            meet();
            return fault;
        }
        meet();
        if (me.exchange(1, large, 1) != Status::in_progress) return "it does not wait for its own";
        if (me.transport().arrived(1) != 1) return "it has not taken the block";
        meet();
        meet();
        std::string fault = me.run_again();
        meet();
        return fault;
    }))));
}

// A patient call ends at once, even if the peer gets its core only after some milliseconds. One with
// two looks may end so.
std::string make_exchanges(BlockPublisher& me)
{
    constexpr unsigned patient = 50'000'000;
    for (std::uint64_t call = 1; call <= 200; call++) {
        const bool is_patient = call % 3 != 0;
        const Status status = me.exchange(call, large, is_patient ? patient : 2);
        if (is_patient && status != Status::ok)
            return "call " + std::to_string(call) + ": " + to_string(status);
        const std::string fault = status == Status::in_progress ? me.run_again() : std::string();
        if (!fault.empty()) return fault;
        if (!me.has_all()) return "call " + std::to_string(call) + ": a wrong byte";
    }
    return "";
}

void test_exchanges(void**)
{
    for (const bool are_in_background : {false, true}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            BlockPublisher me(self, make_whole_transport(self));
            if (are_in_background) me.stay_in_background(true);
            return make_exchanges(me);
        }))));
    }
}

// Another thread copies large blocks, and the start comes back at once.
void test_calls_of_another_thread(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        me.stay_in_background(false);
        for (std::uint64_t call = 1; call <= 20; call++) {
            const int before = readv_calls;
            if (me.exchange(call, large, 20000) != Status::in_progress) return "it ends at once";
            if (readv_calls != before) return "its start copies the block";
            const std::string fault = me.run_again();
            if (!fault.empty()) return fault;
            if (!me.has_all()) return "call " + std::to_string(call) + ": a wrong byte";
        }
        return "";
    }))));
}

// Such a call begins anew. Later ones begin there at once.
void test_refused_exchanges(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        if (self.rank() == 0) readv_mode = Writev::faults;
        for (std::uint64_t call = 1; call <= 20; call++) {
            if (me.exchange(call, large, 20000) != Status::in_progress) return "it ends at once";
            const std::string fault = me.run_again();
            if (!fault.empty()) return fault;
            if (!me.has_all()) return "call " + std::to_string(call) + ": a wrong byte";
        }
        return "";
    }))));
}

// A rank that has failed may use its block again. So what was read meanwhile does not count.
ForkedRank* reader;

void test_no_block_of_a_rank_that_has_failed(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        const auto meet = [&] { (void)self.group().collect(0); };
        if (failed(me.begin(1, 1, large)) || failed(me.put(0))) return "it does not begin";
        if (self.rank() == 1) {
            meet();
            me.transport().raise(Status::transport_error);
            meet();
            meet();
            return me.transport().has_to_take(0) ? "" : "it hears that the block has been taken";
        }
        reader = &self;
        before_readv = [] {  // the peer fails meanwhile
            before_readv = nullptr;
            (void)reader->group().collect(0);
            (void)reader->group().collect(0);
        };
        CountCompletions completions;
        Status status = Status::ok;
        (void)await([&] {
            status = me.transport().progress(completions);
            return before_readv == nullptr;
        });
        if (failed(status) || me.transport().arrived(1) != 0) return "the block counts";
        status = me.transport().progress(completions);
        meet();
        return status == Status::peer_failed ? "" : to_string(status);
    }))));
}

// One block for each rank: so nothing has to be kept in order with cells.
void test_one_block_in_a_call(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        if (failed(me.begin(1, 2, large)) || failed(me.put(0))) return "it does not begin";
        if (me.put(1) != Status::bad_argument) return "another block is lent";
        return me.put_small(1) == Status::bad_argument ? "" : "another block is published";
    }))));
}

void test_an_owner_that_has_died(void**)
{
    const Ends ends = run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        if (failed(me.begin(1, 1, large)) || failed(me.put(0))) return "it does not begin";
        (void)self.group().collect(0);
        if (self.rank() == 1) raise(SIGKILL);
        if (!await([&] { return me.transport().has_ended(1); })) return "the owner does not end";
        if (!me.transport().has_to_take(1)) return "it waits for nobody";
        CountCompletions completions;
        const Status status = me.transport().progress(completions);
        if (status != Status::transport_error) return to_string(status);
        return ForkedRank::is_logged("process_vm_readv of 100000 bytes from node rank 1")
                   ? ""
                   : "it does not say why";
    });
    const bool is_right = ends == Ends{"", "killed by signal 9"};
    expect_no_reason(is_right ? nullptr : keep(first_fault(ends)));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_memory_that_cannot_be_read),
        cmocka_unit_test(test_a_block_is_taken_once),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_calls_of_another_thread),
        cmocka_unit_test(test_refused_exchanges),
        cmocka_unit_test(test_no_block_of_a_rank_that_has_failed),
        cmocka_unit_test(test_one_block_in_a_call),
        cmocka_unit_test(test_an_owner_that_has_died),
    };
    return hier::test::run_cases(argc, argv, "lent_block", tests);
}
