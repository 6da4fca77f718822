// SPDX-License-Identifier: BSD-3-Clause
// Blocks that one kernel pushes to all peers: which ones, that all bytes arrive before their signals,
// and what follows if the runtime refuses.
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct FanOutCase {
    const char* name;
    std::size_t shard;
    FanOutUse use;
    bool in_background;
    bool has_file;          // are the kernels installed?
    std::uint64_t kernels;  // that each call launches on the first rank
    bool is_from_host = false;
};

// All peers are in the call before the first put, so all puts are started together.
std::string put_together(Rank& rank, const ForkedRank& self, std::uint64_t sequence)
{
    rank.counter = {};
    if (failed(rank.begin(sequence)) || failed(rank.transport().announce(Op::every_peer)))
        return "begin failed";
    for (int peer = 0; peer < self.size(); peer++)
        if (peer != self.rank() && !rank.wait_for_peer(peer)) return "a peer is never ready";
    for (int peer = 0; peer < self.size(); peer++)
        if (peer != self.rank()) (void)rank.put_own(peer, static_cast<std::uint32_t>(peer));
    return "";
}

std::string exchange_by_kernels(ForkedRank& self, const FanOutCase& c)
{
    Rank rank(self, false, c.shard, c.use);
    Bytes host(c.shard);
    if (c.is_from_host) rank.send_from(reinterpret_cast<std::byte*>(host.data()));
    rank.in_background = c.in_background;
    std::string fault;
    for (std::uint64_t sequence = 1; sequence <= 3 && fault.empty(); sequence++) {
        const std::uint64_t before = hip_sim_kernels();
        fault = put_together(rank, self, sequence);
        rank.submit();
        for (int peer = 0; peer < self.size() && fault.empty(); peer++)
            if (peer != self.rank()) fault = rank.received(peer, sequence);
        const auto are_done = [&] { return rank.turn() && rank.counter.done == self.size() - 1; };
        if (fault.empty() && !await(are_done)) fault = "not completed";
        const std::uint64_t kernels = hip_sim_kernels() - before;
        if (fault.empty() && self.rank() == 0 && kernels != c.kernels)
            fault = std::to_string(kernels) + " kernels in a call";
        rank.transport().end();
        if (fault.empty() && rank.ran_kernel() != (kernels > 0)) fault = "it says otherwise";
        rank.meet();
    }
    return fault.empty() ? "" : std::string(c.name) + ": " + fault;
}

// A block that goes to several peers goes by one kernel, where that is quicker.
void test_fan_out(void**)
{
    constexpr std::size_t several_thread_blocks = 100000, large = 9 << 20;
    constexpr auto middle = FanOutUse::middle_blocks, all = FanOutUse::all_blocks;
    const FanOutCase cases[] = {
        {"small", 16, middle, false, true, 1},
        {"by four bytes", 16 + 4, middle, false, true, 1},
        {"by four bytes, several thread blocks", several_thread_blocks + 4, middle, false, true, 1},
        {"of several thread blocks", several_thread_blocks, middle, false, true, 1},
        {"in the background", several_thread_blocks, middle, true, true, 1},
        {"in the background, larger", (512 << 10) + 4, middle, true, true, 0},
        {"large", large, middle, false, true, 0},
        {"from memory of the host", several_thread_blocks, middle, false, true, 0, true},
        {"without kernels", several_thread_blocks, middle, false, false, 0},
        {"on one GPU, in the background", several_thread_blocks, all, true, true, 1},
        {"on one GPU, large", large, all, false, true, 1},
    };
    for (const FanOutCase& c : cases) {
        const auto body = [&](ForkedRank& self) { return exchange_by_kernels(self, c); };
        const char* const modules = c.has_file ? HIER_TEST_KERNELS : HIER_TEST_NO_KERNELS;
        expect_no_reason(run(3, "200", body, sharing_version, modules));
    }
}

// Each kernel takes 20 ms, so it is late. Then the next blocks go by copies.
void test_late_kernels(void**)
{
    const auto body = [](ForkedRank& self) -> std::string {
        ComputeUnits::watch_kernels(true);
        Rank rank(self, false, some_bytes, FanOutUse::middle_blocks);
        std::string fault;
        for (std::uint64_t sequence = 1; sequence <= 4 && fault.empty(); sequence++) {
            const std::uint64_t before = hip_sim_kernels();
            fault = put_together(rank, self, sequence);
            rank.submit();
            if (!await([&] { return !rank.turn() || rank.counter.done == self.size() - 1; }))
                fault = "not completed";
            for (int peer = 0; peer < self.size() && fault.empty(); peer++)
                if (peer != self.rank()) fault = rank.received(peer, sequence);
            const std::uint64_t kernels = hip_sim_kernels() - before;
            if (fault.empty() && self.rank() == 0 && kernels != (sequence == 1 ? 1u : 0u))
                fault = std::to_string(kernels) + " kernels in call " + std::to_string(sequence);
            rank.transport().end();
            rank.meet();
        }
        return fault;
    };
    expect_no_reason(run(3, "20000", body, sharing_version, HIER_TEST_KERNELS));
}

// With the copy of the own block a kernel would wait in any case.
void test_late_kernels_out_of_place(void**)
{
    const auto body = [](ForkedRank& self) -> std::string {
        ComputeUnits::watch_kernels(true);
        Rank rank(self, false, some_bytes, FanOutUse::middle_blocks);
        std::string fault;
        for (std::uint64_t sequence = 1; sequence <= 3 && fault.empty(); sequence++) {
            const std::uint64_t before = hip_sim_kernels();
            fault = put_together(rank, self, sequence);
            const Slice own{0, rank.at(self.rank()), some_bytes};
            (void)rank.transport().copy({self.rank(), own, Place::send, Place::receive, 0,
                                         static_cast<std::uint32_t>(self.size())});
            rank.submit();
            if (!await([&] { return !rank.turn() || rank.counter.done == self.size(); }))
                fault = "not completed";
            if (fault.empty() && self.rank() == 0 && hip_sim_kernels() != before + 1)
                fault = "no kernel in call " + std::to_string(sequence);
            rank.meet();
            rank.transport().end();
            rank.meet();
        }
        return fault;
    };
    expect_no_reason(run(3, "20000", body, sharing_version, HIER_TEST_KERNELS));
}

// On a node of two ranks a block in place goes to one peer alone.
void test_one_place(void**)
{
    constexpr std::size_t large = 17 << 20;
    constexpr auto use = FanOutUse::blocks_to_one, middle = FanOutUse::middle_blocks,
                   all = FanOutUse::all_blocks;
    const FanOutCase cases[] = {
        {"to one", some_bytes, use, false, true, 1},
        {"to one, in the background", 512 << 10, use, true, true, 1},
        {"to one, in the background, larger", (512 << 10) + 4, use, true, true, 0},
        {"to one, large", large, use, false, true, 0},
        {"to one, where a block goes to several", some_bytes, middle, false, true, 0},
        {"to one, on one GPU, in the background", some_bytes, all, true, true, 1},
        {"to one, on one GPU, large", large, all, false, true, 1},
    };
    for (const FanOutCase& c : cases) {
        const auto body = [&](ForkedRank& self) { return exchange_by_kernels(self, c); };
        expect_no_reason(run(2, "200", body, sharing_version, HIER_TEST_KERNELS));
    }
}

// The blocks of the other ranks do not begin at multiples of 4 bytes. That of the first rank has a
// length of no such multiple.
void test_unaligned_places(void**)
{
    const auto body = [](ForkedRank& self) {
        const std::uint64_t before = hip_sim_kernels();
        std::string fault = exchange_by_kernels(
            self, {"unaligned", 30001, FanOutUse::middle_blocks, false, true, 1});
        if (self.rank() > 0 && hip_sim_kernels() != before) fault = "a kernel all the same";
        return fault;
    };
    expect_no_reason(run(3, "200", body, sharing_version, HIER_TEST_KERNELS));
}

// Whatever the runtime refuses, the call ends, with the right bytes or with an error.
void test_kernel_that_is_not_started(void**)
{
    int errors = 0;
    for (unsigned refused = 1; refused <= 12; refused++) {
        const auto ends_well = [refused](ForkedRank& self) -> std::string {
            Rank rank(self, false, some_bytes, FanOutUse::middle_blocks);
            const std::string fault = put_together(rank, self, 1);
            if (!fault.empty()) return fault;
            if (self.rank() == 0) hip_sim_fail_at(hip_sim_calls() + refused);
            rank.submit();
            hip_sim_fail_at(0);
            const bool is_done = await([&] { return !rank.turn() || rank.counter.done == 2; });
            const bool has_failed = failed(rank.status) || failed(rank.counter.worst);
            const bool is_idle = await([&] { return rank.transport().idle(); });
            rank.meet();
            rank.transport().end();
            if (!is_done || !is_idle) return "no end";
            return has_failed ? self.rank() == 0 ? "an error" : "a peer failed" : "";
        };
        const char* const said = run(3, "20", ends_well, sharing_version, HIER_TEST_KERNELS);
        if (said == nullptr) continue;
        if (strstr(said, "an error") == nullptr) expect_no_reason(said);
        errors++;
    }
    assert_in_range(errors, 1, 11);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_fan_out),
        cmocka_unit_test(test_late_kernels),
        cmocka_unit_test(test_late_kernels_out_of_place),
        cmocka_unit_test(test_one_place),
        cmocka_unit_test(test_unaligned_places),
        cmocka_unit_test(test_kernel_that_is_not_started),
    };
    return hier::test::run_cases(argc, argv, "fan_out", tests);
}
