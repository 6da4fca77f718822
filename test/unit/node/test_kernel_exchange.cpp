// SPDX-License-Identifier: BSD-3-Clause
// Published blocks by kernels: when kernels run, any mix of memory, ranks that fail or disagree. On the simulated
// CUDA, too, where kernels that repeat an earlier one count by themselves.
#include <atomic>
#include <thread>

#include "node/device/exports/lent_memory.hpp"
#include "test/support/publisher.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr Memory with_kernels = {.has_kernels = true};

// Only the first ranks find kernels, `with` of them. `delay_us`: of what each rank gives its device to do.
const char* run_with_kernels(
    int ranks, bool on_one_device, const std::function<std::string(ForkedRank&)>& body,
    int with = 100, const char* (*delay_us)(int rank) = [](int) { return "200"; })
{
    return keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) {
        const bool has = self.rank() < with;
        setenv("HIER_GPU_MODULES", has ? HIER_TEST_KERNELS : HIER_TEST_NO_KERNELS, 1);
        setenv("HIP_SIM_DELAY_US", delay_us(self.rank()), 1);
        setenv("HIP_SIM_VERSION", not_sharing_version, 1);
        setenv("OMPI_COMM_WORLD_RANK", std::to_string(self.rank()).c_str(), 1);
        gives_success(hipSetDevice(on_one_device ? 0 : self.rank()), "hipSetDevice");
        if (gpu::runtime() == nullptr) return std::string("no runtime");
        return body(self);
    })));
}

// What a call has used, as text: "kernels 1, copies 0".
struct Used {
    std::uint64_t kernels = hip_sim_kernels(), copies = hip_sim_copies();
    std::string text() const
    {
        return "kernels " + std::to_string(hip_sim_kernels() - kernels) + ", copies " +
               std::to_string(hip_sim_copies() - copies);
    }
};

std::string call_uses(Publisher& rank, std::uint64_t sequence, const std::string& expected)
{
    const Used before;
    const std::string wrong = rank.start_and_finish(sequence);
    const std::string used = before.text();
    if (!wrong.empty()) return "call " + std::to_string(sequence) + ": " + wrong;
    if (used != expected) return "call " + std::to_string(sequence) + ": " + used;
    return rank.fault(sequence);
}

// A flag is never 0, which is in zones that have been cleared.
void test_numbers_of_kernels(void**)
{
    constexpr std::uint64_t flags = std::uint64_t{1} << 32;
    assert_int_equal(KernelExchange::kernel_after(0), 1);
    assert_int_equal(KernelExchange::kernel_after(flags - 2), flags - 1);
    assert_int_equal(KernelExchange::kernel_after(flags - 1), flags + 1);
    assert_int_equal(KernelExchange::kernel_after(flags + 1), flags + 2);
}

// A rank says what it can do, decides, and announces. Whoever sees that it has announced sees also what it has said.
void test_words_in_their_order(void**)
{
    constexpr std::uint64_t calls = 100000;
    static NodeSlot slot;
    static std::atomic<std::uint64_t> seen{0};
    std::thread rank([] {
        for (std::uint64_t sequence = 1; sequence <= calls; sequence++) {
            slot.exchange.store(Signal::encode(sequence, 3), std::memory_order_release);
            slot.ready.store(sequence, std::memory_order_release);
            while (seen.load(std::memory_order_acquire) < sequence) std::this_thread::yield();
        }
    });
    std::uint64_t missed = 0;
    for (std::uint64_t sequence = 1; sequence <= calls; sequence++) {
        std::uint32_t what = 0;
        for (int looks = 1; !KernelExchange::has_said(slot, sequence, what); looks++)
            if (looks % 100 == 0) std::this_thread::yield();
        if (what != 3) missed++;
        seen.store(sequence, std::memory_order_release);
    }
    rank.join();
    assert_int_equal(missed, 0);
}

// The first call tells of the zones and goes by copies. One copy clears the zone.
void test_kernels_from_the_second_call_on(void**)
{
    for (const bool on_one_device : {true, false}) {
        for (const int ranks : {2, 5}) {
            expect_no_reason(
                run_with_kernels(ranks, on_one_device, [](ForkedRank& self) -> std::string {
                    Publisher rank(self, self.rank(), with_kernels);
                    std::string wrong = call_uses(rank, 1, "kernels 0, copies 3");
                    for (std::uint64_t sequence = 2; sequence < 10 && wrong.empty(); sequence++)
                        wrong = call_uses(rank, sequence, "kernels 1, copies 0");
                    return wrong;
                }));
        }
    }
}

// Blocks of a few bytes, and those that need several thread blocks. Places are not aligned.
void test_any_length(void**)
{
    for (const std::size_t bytes : {1U, 3U, 4U, 7U, 2049U, 20000U, 65536U}) {
        expect_no_reason(run_with_kernels(3, true, [&](ForkedRank& self) -> std::string {
            Memory memory = with_kernels;
            memory.bytes = bytes;
            Publisher rank(self, self.rank(), memory);
            const std::string wrong = calls(rank, 2);
            return wrong.empty() ? call_uses(rank, 3, "kernels 1, copies 0") : wrong;
        }));
    }
}

// Kernels of rank 1 take 20 ms. All ranks see that theirs are late, and go by copies.
void test_late_kernels(void**)
{
    expect_no_reason(run_with_kernels(
        3, true,
        [](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), with_kernels);
            std::string wrong = calls(rank, 2);
            ComputeUnits::watch_kernels(true);
            if (wrong.empty()) wrong = call_uses(rank, 3, "kernels 1, copies 0");
            for (std::uint64_t sequence = 4; sequence <= 8 && wrong.empty(); sequence++)
                wrong = call_uses(rank, sequence, "kernels 0, copies 2");
            return wrong;
        },
        100, [](int rank) { return rank == 1 ? "20000" : "200"; }));
}

std::string pushed_call_uses(Publisher& rank, std::uint64_t sequence, const std::string& expected)
{
    const Used before;
    if (failed(rank.start(sequence, rank.total()))) return "cannot start";
    Status status = Status::in_progress;
    if (!await([&] {
            status = rank.turn();
            return status != Status::in_progress || rank.wants_announcements();
        }))
        return "call " + std::to_string(sequence) + ": nothing happens";
    if (status != Status::in_progress) return "call " + std::to_string(sequence) + " is over";
    const std::string wrong = rank.begin_anew(sequence);
    const std::string used = before.text();
    if (!wrong.empty()) return "call " + std::to_string(sequence) + ": " + wrong;
    if (used != expected) return "call " + std::to_string(sequence) + ": " + used;
    return rank.fault(sequence);
}

// As if a kernel had been late.
void note_late_kernel(const ForkedRank& self, bool on_one_device)
{
    ComputeUnits::watch_kernels(true);
    ComputeUnits::Kernel kernel;
    kernel.begin(on_one_device ? 0 : self.rank(), ComputeUnits::User::exchange,
                 ComputeUnits::Clock::duration::zero());
    kernel.look();
    ComputeUnits::watch_kernels(false);
}

// In place. Up to four ranks that have a device each push their blocks to the others, until a kernel is due
// again. If there are more, or they share a device, or one block is not in place, all go by copies.
void test_late_kernels_in_place(void**)
{
    struct Case {
        int ranks;
        bool on_one_device, all_in_place;
    };
    for (const Case with :
         {Case{4, false, true}, Case{5, false, true}, Case{4, true, true}, Case{4, false, false}}) {
        const bool push = with.ranks == 4 && !with.on_one_device && with.all_in_place;
        expect_no_reason(
            run_with_kernels(with.ranks, with.on_one_device, [&](ForkedRank& self) -> std::string {
                Memory memory = with_kernels;
                memory.in_place = with.all_in_place || self.rank() != 2;
                Publisher rank(self, self.rank(), memory);
                std::string wrong = calls(rank, 2);
                note_late_kernel(self, with.on_one_device);
                constexpr std::uint64_t end = 3 + ComputeUnits::fewest;
                for (std::uint64_t sequence = 3; sequence < end && wrong.empty(); sequence++)
                    wrong = push ? pushed_call_uses(rank, sequence, "kernels 0, copies 3")
                                 : call_uses(rank, sequence, "kernels 0, copies 2");
                return wrong.empty() ? call_uses(rank, end, "kernels 1, copies 0") : wrong;
            }));
    }
}

// Rank 0 alone has seen a late kernel. Its peers learn of it in call 3, and can push from then on, also behind a call that
// is not in place.
void test_kernels_late_on_one_rank(void**)
{
    expect_no_reason(run_with_kernels(4, false, [](ForkedRank& self) -> std::string {
        Memory memory = with_kernels;
        memory.in_place = true;
        Publisher rank(self, self.rank(), memory);
        std::string wrong = calls(rank, 2);
        if (self.rank() == 0) note_late_kernel(self, false);
        if (wrong.empty()) wrong = call_uses(rank, 3, "kernels 0, copies 2");
        for (std::uint64_t sequence = 4; sequence < 10 && wrong.empty(); sequence++) {
            const bool in_place = sequence % 2 != 0;
            rank.place_block(in_place);
            wrong = in_place ? pushed_call_uses(rank, sequence, "kernels 0, copies 3")
                             : call_uses(rank, sequence, "kernels 0, copies 2");
        }
        return wrong;
    }));
}

// Each rank has another kind of memory, in every turn. All in device memory: kernels, even in place.
void test_any_memory(void**)
{
    constexpr Memory kinds[] = {{true, true, false, true},
                                {false, true, false, true},
                                {true, false, false, true},
                                {true, true, true, true},
                                {false, false, true, true}};
    for (std::size_t turn = 0; turn < std::size(kinds); turn++) {
        expect_no_reason(run_with_kernels(3, true, [&](ForkedRank& self) -> std::string {
            const auto kind = (turn + static_cast<std::size_t>(self.rank())) % std::size(kinds);
            Publisher rank(self, self.rank(), kinds[kind]);
            const std::string wrong = calls(rank, 3);
            return !wrong.empty() || hip_sim_kernels() == 0 ? wrong : "a kernel";
        }));
    }
    expect_no_reason(run_with_kernels(3, false, [&](ForkedRank& self) -> std::string {
        Publisher rank(self, 2 - self.rank(), kinds[self.rank() == 1 ? 3 : 0]);
        const std::string wrong = calls(rank, 2);
        return wrong.empty() ? call_uses(rank, 3, "kernels 1, copies 0") : wrong;
    }));
}

// Rank 1 goes to another device. Its peers map its new zone. HIP maps memory once in a process, so rank 1
// cannot map theirs again for the other device, and calls go by copies.
void test_another_device(void**)
{
    expect_no_reason(run_with_kernels(3, true, [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), with_kernels);
        std::string wrong = calls(rank, 3);
        if (self.rank() == 1) {
            gives_success(hipSetDevice(2), "hipSetDevice");
            rank.move();
        }
        const std::uint64_t kernels = hip_sim_kernels();
        if (wrong.empty()) wrong = rank.call(4);
        if (wrong.empty()) wrong = call_uses(rank, 5, "kernels 0, copies 2");
        return !wrong.empty() || hip_sim_kernels() == kernels ? wrong : "a kernel in call 4";
    }));
}

// Rank 1 goes to another device and back to its first buffers, and gets its first zone again. So its kernels are known,
// but their flags are not the next ones in this zone.
void test_the_first_device_again(void**)
{
    expect_no_reason(run_with_kernels(3, true, [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), with_kernels);
        std::string wrong = calls(rank, 6);
        const Publisher::Buffers first = rank.buffers();
        for (std::uint64_t sequence = 7; sequence < 14 && wrong.empty(); sequence++) {
            if (self.rank() == 1 && (sequence == 7 || sequence == 9)) {
                gives_success(hipSetDevice(sequence == 7 ? 2 : 0), "hipSetDevice");
                sequence == 7 ? rank.move() : rank.move_to(first);
            }
            wrong = rank.call(sequence);
        }
        return wrong.empty() ? call_uses(rank, 14, "kernels 1, copies 0") : wrong;
    }));
}

// Rank 1 goes to another device and back, and gets a new zone there. Rank 0 has host memory meanwhile and maps nothing. So
// the zone that it knows is not rank 1's any more.
void test_a_zone_that_moves_unseen(void**)
{
    expect_no_reason(run_with_kernels(3, true, [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), with_kernels);
        std::string wrong = calls(rank, 3);
        if (self.rank() == 0) rank.move(false);
        for (const int device : {2, 0}) {
            if (self.rank() == 1) {
                if (device == 0)  // what the old zone was is lent to somebody else
                    (void)LentMemory::instance().take_for_kernels(0, gpu::Exchange::zone_bytes(3));
                gives_success(hipSetDevice(device), "hipSetDevice");
                rank.move();
            }
            if (wrong.empty()) wrong = rank.call(device == 2 ? 4 : 5);
        }
        if (self.rank() == 0) rank.move();
        const std::uint64_t kernels = hip_sim_kernels();
        if (wrong.empty()) wrong = rank.call(6);
        if (wrong.empty() && hip_sim_kernels() != kernels) wrong = "a kernel in call 6";
        return wrong.empty() ? call_uses(rank, 7, "kernels 1, copies 0") : wrong;
    }));
}

// All thread blocks on a device run at the same time, however many processes share it.
void test_thread_blocks(void**)
{
    using gpu::exchange_blocks;
    assert_int_equal(exchange_blocks(1, 132), 1);
    assert_int_equal(exchange_blocks(10000, 132), 3);
    assert_int_equal(exchange_blocks(262144, 1), 1);
    for (const unsigned units : {16U, 108U, 132U, 304U})
        assert_true(gpu::exchange_processes * exchange_blocks(262144, units) <=
                    units * gpu::exchange_blocks_of_unit);
}

// A process runs one kernel at a time. Other calls go by copies, on all ranks.
void test_many_teams_at_once(void**)
{
    expect_no_reason(run_with_kernels(2, true, [](ForkedRank& self) -> std::string {
        constexpr int teams = 3;
        std::vector<std::unique_ptr<Publisher>> all;
        for (int team = 0; team < teams; team++) {
            all.push_back(std::make_unique<Publisher>(self, self.rank(), with_kernels));
            if (std::string wrong = calls(*all.back(), 2); !wrong.empty()) return wrong;
        }
        const Used before;
        for (const auto& team : all)
            if (failed(team->start(3, team->total()))) return "cannot start";
        for (const auto& team : all)
            if (team->finish() != Status::ok || !team->fault(3).empty()) return "wrong";
        if (before.text() != "kernels 1, copies 4") return before.text();
        for (const auto& team : all) team->transport().end();
        return call_uses(*all.back(), 4, "kernels 1, copies 0");
    }));
}

// A zone that has been lent before has words with the same flags: those of call 2 stay there, and call 2
// of the next team reads there.
void test_zone_lent_again(void**)
{
    expect_no_reason(run_with_kernels(3, true, [](ForkedRank& self) -> std::string {
        std::string wrong;
        for (int salt = 0; salt < 100 && wrong.empty(); salt += 10) {
            Memory memory = with_kernels;
            memory.salt = salt;
            Publisher rank(self, self.rank(), memory);
            wrong = calls(rank, 2);
            rank.meet();
        }
        return hip_sim_live("allocations") < 30 ? wrong : "every team has a zone of its own";
    }));
}

// The last rank finds no kernels, or no rank does. Every call goes by copies.
void test_no_kernels(void**)
{
    for (const int with : {2, 0}) {
        expect_no_reason(run_with_kernels(
            3, true,
            [](ForkedRank& self) -> std::string {
                Publisher rank(self, self.rank(), with_kernels);
                const std::string wrong = calls(rank, 3);
                return !wrong.empty() || hip_sim_kernels() == 0 ? wrong : "a kernel";
            },
            with));
    }
}

// Raises what has gone wrong on this rank, and waits until nothing runs any more.
std::string end_failed(Publisher& rank, Status status)
{
    if (failed(status)) rank.transport().raise(status);
    const bool is_idle = await([&] { return rank.transport().idle(); });
    rank.transport().end();
    rank.meet();
    return is_idle ? "" : "something runs on";
}

// On rank 1 the n-th call of HIP fails that belongs to the call.
void test_failing_calls_of_the_runtime(void**)
{
    for (std::uint64_t nth = 1; nth < 12; nth++) {
        expect_no_reason(run_with_kernels(2, true, [&](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), with_kernels);
            Status status = Status::ok;
            for (std::uint64_t sequence = 1; sequence < 4 && !failed(status); sequence++) {
                if (self.rank() == 1 && sequence == 1 + nth % 2)
                    rank.before_put = [&] { hip_sim_fail_at(hip_sim_calls() + nth); };
                status = rank.start(sequence, rank.total());
                if (!failed(status)) status = rank.finish();
                hip_sim_fail_at(0);
                if (status == Status::ok && !rank.fault(sequence).empty())
                    return rank.fault(sequence);
                if (!failed(status)) rank.transport().end();
            }
            return end_failed(rank, status);
        }));
    }
}

// Rank 1 enters the call and fails before its kernel starts. The kernels of the others wait for it. Peers
// may write into zones later, so these are not lent again.
void test_peer_that_fails(void**)
{
    expect_no_reason(run_with_kernels(3, true, [&](ForkedRank& self) -> std::string {
        auto rank = std::make_unique<Publisher>(self, self.rank(), with_kernels);
        const std::string wrong = calls(*rank, 2);
        if (!wrong.empty()) return wrong;
        if (failed(rank->start(3, rank->total()))) return "cannot start";
        if (self.rank() != 1) {
            const std::uint64_t kernels = hip_sim_kernels();
            if (!await([&] { return failed(rank->turn()) || hip_sim_kernels() > kernels; }))
                return "no kernel";
        }
        rank->meet();
        const Status status = self.rank() == 1 ? Status::transport_error : rank->finish();
        const std::string runs_on = end_failed(*rank, status);
        rank.reset();
        if (!runs_on.empty()) return runs_on;
        if (LentMemory::instance().lent() != 1) return "the zone may be lent again";
        return self.rank() == 1 || status == Status::peer_failed ? "" : "not told";
    }));
}

// Another size of the whole call, or a call that is not published.
void test_ranks_that_disagree(void**)
{
    for (const bool announces : {false, true}) {
        expect_no_reason(run_with_kernels(2, true, [&](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), with_kernels);
            const std::string wrong = calls(rank, 2);
            if (!wrong.empty()) return wrong;
            rank.meet();  // a failure would end the call before, too
            const auto more = static_cast<std::size_t>(self.rank());
            Status status = Status::ok;
            if (announces && self.rank() == 1) {
                status = rank.announce(3, rank.total() + more);
                (void)await([&] {
                    status = rank.transport().announced(0);
                    return status != Status::in_progress;
                });
            } else {
                if (failed(rank.start(3, rank.total() + more))) return "cannot start";
                status = rank.finish();
            }
            const std::string runs_on = end_failed(rank, status);
            if (!runs_on.empty()) return runs_on;
            return status == Status::mismatch || status == Status::peer_failed ? ""
                                                                               : to_string(status);
        }));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_kernels),
        cmocka_unit_test(test_words_in_their_order),
        cmocka_unit_test(test_kernels_from_the_second_call_on),
        cmocka_unit_test(test_late_kernels),
        cmocka_unit_test(test_late_kernels_in_place),
        cmocka_unit_test(test_kernels_late_on_one_rank),
        cmocka_unit_test(test_any_length),
        cmocka_unit_test(test_thread_blocks),
        cmocka_unit_test(test_any_memory),
        cmocka_unit_test(test_another_device),
        cmocka_unit_test(test_the_first_device_again),
        cmocka_unit_test(test_a_zone_that_moves_unseen),
        cmocka_unit_test(test_many_teams_at_once),
        cmocka_unit_test(test_zone_lent_again),
        cmocka_unit_test(test_no_kernels),
        cmocka_unit_test(test_failing_calls_of_the_runtime),
        cmocka_unit_test(test_peer_that_fails),
        cmocka_unit_test(test_ranks_that_disagree),
    };
    return hier::test::run_cases(argc, argv, "kernel_exchange", tests);
}
