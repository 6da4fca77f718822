// SPDX-License-Identifier: BSD-3-Clause
// The node level if ranks use GPUs: the promise of a signal, waits for peers, and copies that fail.
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

void test_signals_follow_data(void**)
{
    expect_no_reason(run(3, "3000", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        for (std::uint64_t sequence = 1; sequence <= 5; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        return hip_sim_live("mappings") == 2 ? "" : "not by copy engines";
    }));
}

// One rank alone forbids writes of its peers, and no other rank has to know.
void test_peers_that_may_not_write(void**)
{
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        gpu::let_peers_write(self.rank() != 1);
        Rank rank(self);
        const auto fault = exchange(rank, self, 1);
        const std::uint64_t wanted = self.rank() == 1 ? 2 : 1;
        return !fault.empty() || hip_sim_live("mappings") == wanted ? fault : "mapped all the same";
    }));
}

// Copies ask for an engine explicitly if that is better with this version. Later runtimes may lose
// such copies.
void test_forced_copies(void**)
{
    struct Case {
        const char* version;
        bool is_forced;
    };
    setenv("HIP_SIM_NOCU", "1", 1);
    for (const Case c : {Case{"60200000", false}, {"60400000", true}, {"71500000", false}}) {
        expect_no_reason(run(
            2, "20",
            [&](ForkedRank& self) -> std::string {
                Rank rank(self);
                const auto fault = exchange(rank, self, 1);
                constexpr std::uint64_t of_the_trial = 1;
                const bool is_forced = hip_sim_forced_copies() > of_the_trial;
                if (!fault.empty()) return std::string(c.version) + ": " + fault;
                if (is_forced == c.is_forced) return "";
                return std::string(c.version) + (is_forced ? ": forced" : ": not forced");
            },
            c.version));
    }
    unsetenv("HIP_SIM_NOCU");
}

// Copies start in the order of their ops, in whatever order they were gathered.
void test_order_of_ops(void**)
{
    expect_no_reason(run(2, "2000", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (failed(rank.begin(1)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        std::string fault;
        if (self.rank() == 0) {
            // Two puts go to the same place. The content of the later op stays.
            put(rank.receive(), Bytes(some_bytes, 99));
            const Slice slice{0, 0, some_bytes};
            (void)rank.transport().put({1, slice, Place::send, Place::receive, 1, 7});
            (void)rank.transport().put({1, slice, Place::receive, Place::receive, 1, 3});
            rank.submit();
            if (!await([&] { return rank.turn() && rank.counter.done == 2; }))
                fault = "not completed";
        }
        rank.meet();
        if (self.rank() == 1 && get(rank.receive(), some_bytes) != content(0, 1, some_bytes))
            fault = "in the order of gathering";
        rank.transport().end();
        return fault;
    }));
}

void test_late_peer(void**)
{
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        std::string fault;
        if (failed(rank.begin(1))) return "begin failed";
        if (self.rank() < 2) {
            const int peer = 1 - self.rank();
            (void)rank.transport().announce(Op::every_peer);
            if (!rank.wait_for_peer(peer) || failed(rank.put_own(peer, 0))) return "not ready";
            rank.submit();
            fault = rank.received(peer, 1);
            if (!await([&] { return rank.turn() && rank.counter.done == 1; }))
                fault = "not completed";
        }
        rank.meet();
        rank.transport().end();
        return fault.empty() ? "" : "while a third is late: " + fault;
    }));
}

// The rank whose copy fails gets an error. Nobody gets a signal, and all ranks hear of the failure.
void test_failing_copy(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        rank.meet();  // a rank that came later would see the failure in begin()
        std::string fault;
        if (self.rank() == 0) {
            if (!rank.wait_for_peer(1)) return "never ready";
            hip_sim_fail_copy_at(hip_sim_copies() + 1);
            (void)rank.put_own(1, 0);
            rank.submit();
            if (!await([&] { return !rank.turn(); })) fault = "it succeeds";
            if (rank.counter.worst != Status::transport_error) fault = "not said of the op";
            rank.transport().raise(Status::transport_error);
            if (!rank.transport().idle()) fault = "not idle";
        } else {
            if (!await([&] { return !rank.turn(); })) fault = "it never hears of it";
            if (rank.status != Status::peer_failed) fault = "heard as something else";
            if (rank.transport().arrived(0) != 0) fault = "signalled all the same";
        }
        rank.meet();
        rank.transport().end();
        return fault;
    }));
}

// The copy goes into a cell of shared memory, which all peers read. No peer may get the bytes of a
// copy that has failed.
void test_failing_copy_into_a_cell(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        gpu::let_peers_write(false);
        Rank rank(self);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        rank.meet();
        std::string fault;
        if (self.rank() == 0) {
            if (!rank.wait_for_peer(1) || !rank.wait_for_peer(2)) return "never ready";
            hip_sim_fail_copy_at(hip_sim_copies() + 1);
            (void)rank.put_own(1, 0);
            (void)rank.put_own(2, 1);
            if (!await([&] { return !rank.turn(); })) fault = "it succeeds";
            (void)rank.turn();
            if (rank.counter.done != 0) fault = "done all the same";
        }
        rank.meet();
        if (self.rank() != 0) {
            (void)rank.turn();
            if (!await([&] { return rank.transport().idle(); })) fault = "not idle";
            (void)rank.turn();
            if (rank.transport().arrived(0) != 0) fault = "passed on all the same";
        }
        rank.meet();
        rank.transport().end();
        return fault;
    }));
}

// The copy writes into a peer's memory. While it goes on, its rank must not say that it has
// stopped. That also holds if the runtime refuses a call behind the copy: call number `refused`; 0:
// no call.
std::string hang_or_fail(ForkedRank& self, bool hangs, int refused)
{
    gpu::limit_waits({.bound = std::chrono::seconds(1), .fails = true});
    Rank rank(self);
    if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
    if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
        return "begin failed";
    if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
    rank.meet();
    std::string fault;
    char goes_on = 0;
    if (self.rank() == 0) {
        (hangs ? hip_sim_hang_copy_at : hip_sim_fail_copy_at)(hip_sim_copies() + 1);
        if (refused > 0) hip_sim_fail_at(hip_sim_calls() + static_cast<unsigned>(refused));
        (void)rank.put_own(1, 0);
        rank.submit();
        hip_sim_fail_at(0);
        goes_on = gpu::runtime()->finish_copies() ? 0 : 1;
        if (refused == 0 && (goes_on != 0) != hangs) fault = "not the copy that was meant";
        if (!await([&] { return !rank.turn(); })) fault = "it succeeds";
        rank.transport().raise(rank.counter.worst);
        if (goes_on != 0 ? rank.transport().idle()
                         : !await([&] { return rank.transport().idle(); }))
            fault = goes_on != 0 ? "idle" : "not idle";
        rank.transport().stop();
    }
    goes_on = self.group().collect(goes_on)[0];
    if (self.rank() == 1 && rank.transport().may_write(0, 1) != (goes_on != 0))
        fault = goes_on != 0 ? "it says that it has stopped" : "it does not say so";
    rank.meet();
    hip_sim_hang_copy_at(0);
    rank.transport().end();
    return fault;
}

void test_copy_that_does_not_end(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) { return hang_or_fail(self, false, 0); }));
    for (int refused = 0; refused <= 8; refused++) {
        expect_no_reason(run(
            2, "20", [refused](ForkedRank& self) { return hang_or_fail(self, true, refused); }));
    }
}

// A copy goes on when the communicator is gone. Its cells must stay.
void test_cells_of_a_copy_that_does_not_end(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        gpu::limit_waits({.bound = std::chrono::seconds(1), .fails = true});
        gpu::let_peers_write(false);
        {
            Rank rank(self);
            if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
            if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
                return "begin failed";
            if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
            hip_sim_hang_copy_at(hip_sim_copies() + 1);
            (void)rank.put_own(1 - self.rank(), 0);
            if (!rank.turn()) return "the copy is not started";
            rank.meet();
        }
        if (gpu::runtime()->finish_copies()) return "the copy is over";
        hip_sim_hang_copy_at(0);
        return await([] { return gpu::runtime()->finish_copies(); }) ? "" : "it does not go on";
    }));
}

// A copy that cannot be started is an error of the call. Afterwards no copy is running.
void test_copy_that_is_not_started(void**)
{
    expect_no_reason(run(2, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        (void)rank.put_own(1 - self.rank(), 0);
        hip_sim_fail_at(hip_sim_calls() + 1);
        rank.submit();
        hip_sim_fail_at(0);
        const bool is_error = await([&] { return !rank.turn(); });
        const bool is_idle = rank.transport().idle();
        rank.meet();
        rank.transport().end();
        return !is_error ? "no error" : is_idle ? "" : "not idle";
    }));
}

// The calls of HIP for three puts of so many bytes, or 0.
std::uint64_t calls_for_puts(Rank& rank, const ForkedRank& self, std::uint64_t sequence,
                             std::size_t bytes, bool to_one_peer)
{
    rank.counter = {};
    if (failed(rank.begin(sequence)) || failed(rank.transport().announce(Op::every_peer))) return 0;
    for (int peer = 0; peer < self.size(); peer++)
        if (peer != self.rank() && !rank.wait_for_peer(peer)) return 0;
    for (std::uint32_t op = 0; op < 3; op++) {
        const int distance = to_one_peer ? 1 : 1 + static_cast<int>(op % 2);
        (void)rank.transport().put({(self.rank() + distance) % self.size(),
                                    {0, rank.at(self.rank()), bytes},
                                    Place::send,
                                    Place::receive,
                                    op + 1,
                                    op});
    }
    const std::uint64_t before = hip_sim_calls();
    rank.submit();
    const std::uint64_t calls = hip_sim_calls() - before;
    const bool is_done = await([&] { return !rank.turn() || rank.counter.done == 3; });
    rank.meet();
    rank.transport().end();
    return is_done && !failed(rank.status) && !failed(rank.counter.worst) ? calls : 0;
}

// A peer may pass on one of them while the next one is on its way. So each has signals of its own.
void test_large_puts_of_a_pair_signal_alone(void**)
{
    constexpr std::size_t large = 8 << 20;
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, false, large);
        (void)calls_for_puts(rank, self, 1, large, true);  // opens streams
        const auto alone = calls_for_puts(rank, self, 2, large, true);
        const auto small = calls_for_puts(rank, self, 3, large - 1, true);
        (void)calls_for_puts(rank, self, 4, large, false);
        const auto to_two = calls_for_puts(rank, self, 5, large, false);
        const auto small_to_two = calls_for_puts(rank, self, 6, large - 1, false);
        if (alone == 0 || small == 0 || to_two == 0 || small_to_two == 0) return "no end";
        if (alone <= small) return "large puts are started together";
        return to_two != small_to_two ? "puts to several peers are started one by one" : "";
    }));
}

// The device of pinned memory is the one that was current at its allocation, often the first.
void test_the_device_that_is_used(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        void* pinned = nullptr;
        gives_success(hipSetDevice(0), "hipSetDevice");
        gives_success(hipHostMalloc(&pinned, 100, 0), "hipHostMalloc");
        gives_success(hipSetDevice(self.rank()), "hipSetDevice");
        Allocation found;
        (void)gpu::inspect(pinned, found);
        if (gpu::used_device() != 0) return "none yet";
        (void)allocation_of(device_memory(100));
        (void)gpu::inspect(pinned, found);
        return gpu::used_device() == self.rank() ? "" : "where its pinned memory was made";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_follow_data),
        cmocka_unit_test(test_peers_that_may_not_write),
        cmocka_unit_test(test_forced_copies),
        cmocka_unit_test(test_order_of_ops),
        cmocka_unit_test(test_late_peer),
        cmocka_unit_test(test_failing_copy),
        cmocka_unit_test(test_failing_copy_into_a_cell),
        cmocka_unit_test(test_copy_that_does_not_end),
        cmocka_unit_test(test_cells_of_a_copy_that_does_not_end),
        cmocka_unit_test(test_copy_that_is_not_started),
        cmocka_unit_test(test_large_puts_of_a_pair_signal_alone),
        cmocka_unit_test(test_the_device_that_is_used),
    };
    return hier::test::run_cases(argc, argv, "copy_engines", tests);
}
