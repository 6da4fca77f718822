// SPDX-License-Identifier: BSD-3-Clause
// Small calls inside a node, between processes. No rank waits for another one, and no block is
// overwritten before all ranks have read it.
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/host/node_publish.hpp"
#include "node/node_setup.hpp"
#include "test/support/block_publisher.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t space = (32 << 10) - 64;  // on a node of few ranks

// Calls back to back, with one block or many, from the smallest to the largest size. Both with CMA
// and with shared memory alone.
void test_calls(void**)
{
    constexpr std::size_t head = NodePublish::space_for(1, 0);
    const struct {
        std::size_t blocks, size;
    } calls[] = {{1, 1},
                 {1, 32},
                 {1, 33},
                 {3, 7},
                 {1, space - head},
                 {1, 16},
                 {40, 100},
                 {1, 5},
                 {7, (space - 7 * head) / 7}};
    for (const int intra : {HIER_INTRA_AUTO, HIER_INTRA_SHM}) {
        for (int ranks = 2; ranks <= 5; ranks++) {
            expect_no_reason(keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) {
                BlockPublisher me(self, intra);
                std::string fault;
                std::uint64_t number = 0;
                for (int round = 0; round < 50 && fault.empty(); round++) {
                    for (const auto& call : calls) {
                        if (fault.empty()) fault = me.run(++number, call.blocks, call.size);
                    }
                }
                return fault;
            }))));
        }
    }
}

void test_places_of_the_readers(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) {
        BlockPublisher me(self);
        me.displace();
        std::string fault;
        std::uint64_t number = 0;
        for (const std::size_t size : {1, 33, 5000}) {
            for (const std::size_t blocks : {1, 4}) {
                if (fault.empty()) fault = me.run(++number, blocks, size);
            }
        }
        return fault;
    }))));
}

// Behind the last block the result has no more bytes, though the buffer has.
void test_no_such_home(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        me.displace();
        if (failed(me.begin(1, 1, 1))) return "it does not begin";
        const Status put = self.rank() == 0 ? me.put_to(2, 0) : me.put(0);
        if (put != Status::ok) return "a block is not taken";
        const std::string fault = me.take_all();
        const bool is_right = self.rank() == 0
                                  ? fault.empty()
                                  : fault == std::string("call 1: ") + to_string(Status::mismatch);
        return is_right ? "" : "rank " + std::to_string(self.rank()) + ": " + fault;
    }))));
}

// The largest block that a node publishes which has the whole team.
void test_large_blocks_of_a_single_node(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(6, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self, make_whole_transport(self));
        const std::size_t most = me.transport().max_published(true);
        if (most != 128 << 10 || me.transport().max_published(false) != 64 << 10)
            return "another limit";
        me.displace();
        std::string fault;
        for (std::uint64_t call = 1; call <= 20 && fault.empty(); call++)
            fault = me.run(call, 1, call % 2 == 0 ? most : 8);
        return fault;
    }))));
}

// A copy of this rank starts more slowly than by any kernel that was measured.
void test_two_ranks_publish_more_if_copies_start_slowly(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        // The first rank finds it out for both. Its first two copies try whether it may write into itself and into the
        // other rank; then it times copies, and none into itself.
        if (self.rank() == 0)
            before_writev = [] {
                if (writev_calls > 2) usleep(10);
            };
        BlockPublisher me(self, make_whole_transport(self));
        constexpr std::size_t most = 16 << 10;
        const int tried = readv_calls;
        std::string fault;
        for (std::uint64_t call = 1; call <= 20 && fault.empty(); call++)
            fault = me.run(call, 1, call % 2 == 0 ? most : 8);
        if (fault.empty() && readv_calls != tried) fault = "blocks are lent";
        if (fault.empty()) fault = me.run(21, 1, most + 1);
        if (fault.empty() && readv_calls == tried) fault = "larger blocks are not lent";
        return fault;
    }))));
}

// As on a node of many ranks: words of several ranks in one cache line, and small halves.
void test_packed_words(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [&](ForkedRank& self) {
        BlockPublisher me(self, make_packed_transport(self, true));
        const std::size_t most = me.transport().publish_space() - NodePublish::space_for(1, 0);
        std::string fault = most < 512 || most > 1024 ? "the halves are not small" : "";
        for (std::uint64_t call = 1; call <= 300 && fault.empty(); call++)
            fault = call % 3 == 0 ? run_traffic(me.transport(), self,
                                                make_traffic(call, 4, 2, {9, 3000}), call)
                                  : me.run(call, 1, call % 2 == 0 ? most : 8);
        return fault;
    }))));
}

// Calls through cells and by CMA lie in between.
void test_among_others(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [&](ForkedRank& self) {
        BlockPublisher me(self);
        std::string fault;
        for (std::uint64_t call = 1; call <= 300 && fault.empty(); call++) {
            const std::size_t size = call % 5 == 0 ? 70000 : 9;
            fault = call % 3 == 0 ? run_traffic(me.transport(), self,
                                                make_traffic(call, self.size(), 2, {size}), call)
                                  : me.run(call, 1, 8);
        }
        return fault;
    }))));
}

// A block is put before its reader is in the call, or while the reader is still in the call before.
void test_nobody_is_waited_for(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
        const Group group = self.group();
        BlockPublisher me(self);
        const bool is_late = self.rank() == 0;
        if (!is_late && (failed(me.begin(1, 2, 10)) || me.put(0) != Status::ok))
            return "it does not begin";
        if (!is_late && me.transport().entered(0) != Status::in_progress)
            return "who has not come is there";
        (void)group.collect(0);
        if (is_late && (failed(me.begin(1, 2, 10)) || me.put(0) != Status::ok))
            return "the late one does not begin";
        if (me.put(1) != Status::ok) return "a second block is not taken";
        // A rank that has ended begins the next call at once.
        std::string fault = me.take_all();
        me.transport().end();
        return fault.empty() ? me.run(2, 1, 10) : fault;
    }))));
}

// The slowest reader still finds the blocks of its call when the others are one call ahead.
void test_a_slow_reader(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
        const Group group = self.group();
        BlockPublisher me(self);
        std::string fault;
        for (std::uint64_t call = 1; call < 20 && fault.empty(); call += 2) {
            const bool is_slow = self.rank() == static_cast<int>(call) % 3;
            if (failed(me.begin(call, 2, 50)) || me.put(0) != Status::ok || me.put(1) != Status::ok)
                return "it does not begin";
            if (!is_slow) {
                fault = me.take_all();
                me.transport().end();
                if (failed(me.begin(call + 1, 1, 70)) || me.put(0) != Status::ok)
                    return "the next call does not begin";
            }
            (void)group.collect(0);
            if (is_slow) {
                fault = me.take_all();
                me.transport().end();
                if (failed(me.begin(call + 1, 1, 70)) || me.put(0) != Status::ok)
                    return "the slow one's next call does not begin";
            }
            if (fault.empty()) fault = me.take_all();
            me.transport().end();
        }
        return fault;
    }))));
}

// ---- whole calls at once

// Who comes last has all at its first look. The others go on, and show nothing anew: their blocks have other
// bytes meanwhile.
void test_exchanges(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        BlockPublisher me(self);
        std::string fault;
        for (std::uint64_t call = 1; call <= 40 && fault.empty(); call++) {
            const bool is_last = self.rank() == static_cast<int>(call) % 4;
            if (call % 8 > 5) me.displace();
            if (is_last) (void)group.collect(0);
            const Status status = me.exchange(call, call % 3 == 0 ? 3000 : 24, is_last ? 1 : 9);
            if (status != (is_last ? Status::ok : Status::in_progress))
                return "call " + std::to_string(call) + ": " + to_string(status);
            if (!is_last) fault = me.run_exchanged([&] { (void)group.collect(0); });
            if (!me.has_all()) return "call " + std::to_string(call) + ": a wrong byte";
        }
        return fault;
    }))));
}

// Some ranks make it an exchange, others do not.
void test_exchanges_among_others(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        std::string fault;
        for (std::uint64_t call = 1; call <= 300 && fault.empty(); call++) {
            if ((call + static_cast<std::uint64_t>(self.rank())) % 3 == 0) {
                fault = me.run(call, 1, 50);
            } else if (me.exchange(call, 50, 100) == Status::in_progress) {
                fault = me.run_exchanged();
            }
            if (!me.has_all()) return "call " + std::to_string(call) + ": a wrong byte";
        }
        return fault;
    }))));
}

// Ranks that disagree hear of it when the call goes on.
void test_an_exchange_of_other_blocks(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        BlockPublisher me(self);
        const std::size_t size = self.rank() == 0 ? 8 : 16;
        if (self.rank() == 1) (void)group.collect(0);
        const Status status = me.exchange(1, size, 1);
        if (self.rank() == 0) (void)group.collect(0);
        if (status != Status::in_progress) return to_string(status);
        const std::string fault = me.run_exchanged();
        return fault == std::string("call 1: ") + to_string(Status::mismatch) ? "" : "no mismatch";
    }))));
}

void test_large_blocks_are_not_exchanged(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        const Status status = me.exchange(1, (16 << 10) + 1, 1u << 20);
        if (status != Status::in_progress) return to_string(status);
        const std::string fault = me.run(1, 1, (16 << 10) + 1);
        return fault.empty() && !me.has_all() ? "a wrong byte" : fault;
    }))));
}

// Interrupts this process again and again, for longer than a call takes. The next interruption comes
// some time behind the end of the last one, however long a sleep takes on this machine.
class Interruptions {
public:
    Interruptions()
    {
        struct sigaction action {};
        action.sa_handler = [](int) {
            usleep(200);
            interrupt_after(pause);
        };
        action.sa_flags = SA_RESTART;
        sigaction(SIGALRM, &action, nullptr);
        interrupt_after(pause);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    ~Interruptions()
    {
        signal(SIGALRM, SIG_IGN);
        interrupt_after(0);
    }

private:
    static constexpr suseconds_t pause = 100;
    static void interrupt_after(suseconds_t microseconds)
    {
        const itimerval once{{0, 0}, {0, microseconds}};
        setitimer(ITIMER_REAL, &once, nullptr);
    }
};

Status entered_at_last(Transport& transport, int peer)
{
    Status status = Status::in_progress;
    (void)await([&] {
        for (int i = 0; i < 10000 && status == Status::in_progress; i++)
            status = transport.entered(peer);
        return status != Status::in_progress;
    });
    return status;
}

// Published calls and calls that are only entered, in turns, each of another shape. While rank 0 looks
// whether rank 1 is in a published call, that rank ends it and enters the next one. On a busy machine
// each call costs time slices, so there are fewer.
void test_entered_while_the_peer_goes_on(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point late = Clock::now() + std::chrono::seconds(10);
        BlockPublisher me(self);
        const int peer = 1 - self.rank();
        std::unique_ptr<Interruptions> interruptions;
        if (self.rank() == 0) interruptions = std::make_unique<Interruptions>();
        for (std::uint64_t call = 1; call < 30000; call++) {
            const bool publish = call % 2 != 0;
            if (failed(me.begin(call, 1, call % 7 + 1, publish))) return "it does not begin";
            if (publish && self.rank() == 1) sched_yield();  // so that rank 0 looks too early
            if (failed(publish ? me.put(0) : me.transport().enter(peer)))
                return "a call is not entered";
            const Status status = entered_at_last(me.transport(), peer);
            if (status != Status::ok)
                return "call " + std::to_string(call) + ": " + to_string(status);
            me.transport().end();
            if (call % 1000 == 0 && self.group().collect<int>(Clock::now() > late).front())
                return "";
        }
        return "";
    }))));
}

void test_too_much(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        const std::size_t max = space;
        if (failed(me.begin(1, 1, max)) || me.put(0) != Status::bad_argument)
            return "a block that is too large is taken";
        if (failed(me.begin(2, 2, max / 2)) || me.put(0) != Status::ok) return "one is not taken";
        return me.put(1) == Status::bad_argument ? "" : "one too many is taken";
    }))));
}

// Ranks begin calls of different sizes. In the second part only one of them publishes.
void test_mismatch(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        const std::size_t size = self.rank() == 2 ? 101 : 100;
        if (failed(me.begin(1, 1, size)) || me.put(0) != Status::ok) return "it does not begin";
        Status status = Status::ok;
        (void)await([&] {
            for (int peer = 0; peer < self.size(); peer++)
                if (peer != self.rank() && !failed(status)) status = me.transport().entered(peer);
            return failed(status);
        });
        return status == Status::mismatch ? "" : to_string(status);
    }))));
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        if (self.rank() == 0)
            return !failed(me.begin(1, 1, 10)) && me.put(0) == Status::ok ? ""
                                                                          : "it does not begin";
        std::vector<std::byte> large(1 << 20);
        const Region all{large.data(), large.size()};
        Binding binding{1, all, all};
        binding.total = large.size();
        if (failed(me.transport().begin(binding)) ||
            failed(me.transport().announce(Op::every_peer)))
            return "the large one does not begin";
        Status status = Status::in_progress;
        (void)await([&] { return failed(status = me.transport().announced(0)); });
        return status == Status::mismatch ? "" : to_string(status);
    }))));
}

// A block that does not fit is refused once. After that no block is taken any more.
void test_nothing_is_taken_after_a_failure(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        BlockPublisher me(self);
        const std::size_t size = self.rank() == 1 ? 1000 : 10;
        if (failed(me.begin(1, 1, size)) || me.put(0) != Status::ok) return "it does not begin";
        (void)self.group().collect(0);
        if (self.rank() == 1) return "";
        CountCompletions ignore;
        Status status = me.transport().progress(ignore);
        if (status != Status::mismatch) return std::string("first: ") + to_string(status);
        me.transport().raise(status);
        status = me.transport().progress(ignore);
        if (status != Status::ok) return std::string("then: ") + to_string(status);
        if (me.transport().arrived(1) != 0) return "it counts";
        return me.transport().may_write(1, 1) ? "it waits for whoever writes to nobody" : "";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_places_of_the_readers),
        cmocka_unit_test(test_no_such_home),
        cmocka_unit_test(test_large_blocks_of_a_single_node),
        cmocka_unit_test(test_two_ranks_publish_more_if_copies_start_slowly),
        cmocka_unit_test(test_packed_words),
        cmocka_unit_test(test_among_others),
        cmocka_unit_test(test_nobody_is_waited_for),
        cmocka_unit_test(test_a_slow_reader),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_exchanges_among_others),
        cmocka_unit_test(test_an_exchange_of_other_blocks),
        cmocka_unit_test(test_large_blocks_are_not_exchanged),
        cmocka_unit_test(test_entered_while_the_peer_goes_on),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_nothing_is_taken_after_a_failure),
    };
    return hier::test::run_cases(argc, argv, "node_publish", tests);
}
