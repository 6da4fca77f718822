// SPDX-License-Identifier: BSD-3-Clause
// The CPU moves small blocks of device memory: through a large BAR on the simulated ROCm, by GDRCopy on the
// simulated CUDA. The devices miss what it has stored until it flushes.
#include "node/device/cpu_access.hpp"
#include "test/support/publisher.hpp"
#ifdef HIER_CUDA
#include "test/support/simulated_gdrcopy.hpp"
#endif

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t max_by_cpu = 4096;
constexpr Memory by_cpu = {.max_by_cpu = max_by_cpu};

#ifdef HIER_CUDA
std::uint64_t count_flushes() { return count_of_gdrcopy("flushes"); }
void open_way(const char*)
{
    setenv("CUDA_SIM_REFUSES", "segments", 1);
    load_gdrcopy();
}
#else
std::uint64_t count_flushes() { return hip_sim_flushes(); }
void open_way(const char* bar) { setenv("HIP_SIM_LARGE_BAR", bar, 1); }
#endif

const char* run_by_cpu(int ranks, const std::function<std::string(ForkedRank&)>& body,
                       const char* modules = HIER_TEST_MODULES, const char* bar = "1")
{
    const auto tried = [&](ForkedRank& self) -> std::string {
        return max_block_by_cpu(self.rank()) == 0 ? "the trial has failed" : body(self);
    };
    open_way(bar);
    // The trial finds the CPU quicker, on busy cores too.
    setenv("HIP_SIM_LEAST_DELAY_US", "5000", 1);
    return run(ranks, "50", tried, sharing_version, modules);
}

// What calls cost on this rank.
struct Cost {
    std::uint64_t copies = hip_sim_copies(), kernels = hip_sim_kernels(), flushes = count_flushes();
};

std::string of_one_call(Publisher& rank, std::uint64_t sequence, std::uint64_t copies,
                        std::uint64_t flushes)
{
    const Cost before;
    if (failed(rank.start(sequence, rank.total()))) return "cannot start";
    if (rank.finish() != Status::ok) return "not finished";
    const Cost after;
    rank.transport().end();
    if (after.copies != before.copies + copies)
        return std::to_string(after.copies - before.copies) + " copies";
    if (after.kernels != before.kernels) return "a kernel";
    if (after.flushes != before.flushes + flushes)
        return std::to_string(after.flushes - before.flushes) + " flushes";
    return rank.fault(sequence);
}

void test_no_copy_and_one_flush(void**)
{
    for (const bool in_place : {false, true}) {
        for (const char* modules : {HIER_TEST_MODULES, HIER_TEST_KERNELS}) {
            expect_no_reason(run_by_cpu(
                3,
                [&](ForkedRank& self) -> std::string {
                    Memory memory = by_cpu;
                    memory.in_place = in_place;
                    memory.has_kernels = modules == std::string(HIER_TEST_KERNELS);
                    Publisher rank(self, self.rank(), memory);
                    std::string wrong = calls(rank, 3);
                    return wrong.empty() ? of_one_call(rank, 4, 0, 1) : wrong;
                },
                modules));
        }
    }
}

void test_larger_blocks_go_by_copies(void**)
{
    for (const std::size_t bytes : {max_by_cpu, max_by_cpu + 1}) {
        expect_no_reason(run_by_cpu(2, [&](ForkedRank& self) -> std::string {
            Memory memory = by_cpu;
            memory.bytes = bytes;
            Publisher rank(self, self.rank(), memory);
            const std::string wrong = calls(rank, 3);
            const bool is_by_cpu = bytes == max_by_cpu;
            return wrong.empty() ? of_one_call(rank, 4, is_by_cpu ? 0 : 2, is_by_cpu ? 1 : 0)
                                 : wrong;
        }));
    }
}

// Each rank has another kind of memory, and each kind is in some turn.
void test_any_memory(void**)
{
    constexpr Memory kinds[] = {{true, true, false},   {false, true, false}, {true, false, false},
                                {false, false, false}, {true, true, true},   {false, false, true}};
    for (std::size_t turn = 0; turn < std::size(kinds); turn += 2) {
        expect_no_reason(run_by_cpu(3, [&](ForkedRank& self) -> std::string {
            Memory memory =
                kinds[(turn + static_cast<std::size_t>(self.rank())) % std::size(kinds)];
            memory.max_by_cpu = max_by_cpu;
            memory.bytes = 3001;  // the blocks begin anywhere
            Publisher rank(self, self.rank(), memory);
            return calls(rank, 3);
        }));
    }
}

// The CPU does not reach memory that the application maps.
void test_memory_that_the_cpu_does_not_reach(void**)
{
    expect_no_reason(run_by_cpu(2, [](ForkedRank& self) -> std::string {
        std::byte* const mapped = mapped_memory(1, self.rank());
        ReachedBuffer buffer;
        if (buffer.window({mapped, 100, allocation_of(mapped)})) return "mapped memory";
        std::byte* const plain = device_memory(100);
        if (!buffer.window({plain, 100, allocation_of(plain)})) return "not reached";
        if (buffer.window({plain, 101, allocation_of(plain)})) return "beyond the end";
        use_device(self.rank() + 2);
        std::byte* const other = device_memory(100);
        return buffer.window({other, 100, allocation_of(other)}) ? "" : "another device";
    }));
}

// One rank publishes by copies, because the CPU does not reach its memory. One uses another device.
void test_a_rank_that_copies(void**)
{
    expect_no_reason(run_by_cpu(3, [](ForkedRank& self) -> std::string {
        if (self.rank() == 2) use_device(5);
        Memory memory = by_cpu;
        memory.is_mapped = self.rank() == 1;
        Publisher rank(self, self.rank(), memory);
        const std::string wrong = calls(rank, 3);
        const bool is_by_cpu = self.rank() != 1;
        return wrong.empty() ? of_one_call(rank, 4, is_by_cpu ? 0 : 2, is_by_cpu ? 1 : 0) : wrong;
    }));
}

#ifndef HIER_CUDA

void test_no_register(void**)
{
    const auto body = [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), by_cpu);
        const std::string wrong = calls(rank, 3);
        return wrong.empty() ? of_one_call(rank, 4, 0, 0) : wrong;
    };
    expect_no_reason(run_by_cpu(2, body, HIER_TEST_MODULES, "2"));
}

std::string moves_none(const char* words)
{
    if (max_block_by_cpu(0) != 0) return "the CPU moves blocks";
    return ForkedRank::is_logged(words) ? "" : ForkedRank::log_lines();
}

void test_no_large_bar(void**)
{
    setenv("HIP_SIM_LARGE_BAR", "0", 1);
    expect_no_reason(run(1, "20", [](ForkedRank&) {
        return moves_none("the CPU moves no blocks of its memory: it does not reach that memory: "
                          "the device has no large BAR");
    }));
}

// The device needs a flush, and the runtime tells no register.
void test_stores_that_are_missed(void**)
{
    setenv("HIP_SIM_LARGE_BAR", "3", 1);
    expect_no_reason(
        run(1, "20", [](ForkedRank&) { return moves_none("copies miss what it has stored"); }));
}

#endif

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_no_copy_and_one_flush),
        cmocka_unit_test(test_larger_blocks_go_by_copies),
        cmocka_unit_test(test_any_memory),
        cmocka_unit_test(test_memory_that_the_cpu_does_not_reach),
        cmocka_unit_test(test_a_rank_that_copies),
#ifndef HIER_CUDA
        cmocka_unit_test(test_no_register),
        cmocka_unit_test(test_no_large_bar),
        cmocka_unit_test(test_stores_that_are_missed),
#endif
    };
    return hier::test::run_cases(argc, argv, "cpu_access", tests);
}
