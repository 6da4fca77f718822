// SPDX-License-Identifier: BSD-3-Clause
// Host memory that is kept and grows. It is pinned if possible, and pageable otherwise. On
// simulated devices.
#include "memory/host_memory.hpp"
#include "test/support/device_process.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::uint64_t pinned() { return hip_sim_live("pinned") + hip_sim_live("registrations"); }

// Lets the runtime's call that pins memory fail. The loop finds out which call of reserve() that
// is.
std::byte* reserve_unpinned(HostMemory& memory, std::size_t bytes)
{
    std::uint64_t pins = 0;
    for (bool is_pinned = true; is_pinned;) {
        HostMemory trial;
        hip_sim_fail_at(hip_sim_calls() + ++pins);
        (void)trial.reserve(0, bytes);
        is_pinned = trial.is_pinned() && pins < 100;
    }
    hip_sim_fail_at(hip_sim_calls() + pins);
    std::byte* const data = memory.reserve(0, bytes);
    hip_sim_fail_at(0);
    return data;
}

// Blocks that are outgrown stay to the end. Each block has at least twice the size of the one
// before.
void test_growing(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        auto memory = std::make_unique<HostMemory>();
        const std::byte* const first = memory->reserve(0, MiB);
        if (first == nullptr || !memory->is_pinned() || pinned() != 1) return "not pinned";
        if (memory->reserve(0, 1) != first) return "others for less";
        const std::byte* const second = memory->reserve(0, MiB + 1);
        if (second == first || pinned() != 2) return "what was outgrown is gone";
        if (memory->reserve(0, 2 * MiB) != second) return "it did not grow to twice its size";
        if (memory->reserve(-1, 1) != second) return "others where no device is concerned";
        memory.reset();
        return pinned() == 0 ? "" : "something is left";
    }));
}

void test_large_blocks_do_not_stay(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        HostMemory memory;
        if (memory.reserve(0, 129 * MiB) == nullptr) return "no memory";
        if (memory.reserve(0, 130 * MiB) == nullptr) return "no more memory";
        return pinned() == 1 ? "" : "it stays";
    }));
}

// If nothing can be pinned, memory is pageable. It is pinned as soon as that is possible.
void test_nothing_to_pin(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        HostMemory memory;
        std::byte* const pages = reserve_unpinned(memory, MiB);
        if (pages == nullptr || memory.is_pinned()) return "no pages";
        pages[MiB - 1] = std::byte{1};
        if (reserve_unpinned(memory, MiB) != pages) return "other pages for as much";
        if (memory.reserve(0, MiB) == nullptr || !memory.is_pinned()) return "not pinned later";
        return pinned() == 1 ? "" : "not one";
    }));
}

// A copy reads pageable memory at any time until it ends, so the pages must stay.
void test_pages_of_a_copy_that_does_not_end(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        gpu::limit_waits({.bound = std::chrono::seconds(1), .fails = true});
        std::byte* const device = device_memory(MiB);
        auto memory = std::make_unique<HostMemory>();
        std::byte* const pages = reserve_unpinned(*memory, MiB);
        if (pages == nullptr || memory->is_pinned()) return "no pages";
        std::fill(pages, pages + MiB, std::byte{7});
        hip_sim_hang_copy_at(hip_sim_copies() + 1);
        const gpu::Copy copy{device, pages, MiB, gpu::Copy::inside};
        std::uint64_t ticket = 0;
        if (failed(gpu::queue(0)->start({&copy, 1}, {}, ticket))) return "no copy";
        memory.reset();
        hip_sim_hang_copy_at(0);
        gives_success(hipDeviceSynchronize(), "the end of the copy");
        return get(device, MiB) == Bytes(MiB, 7) ? "" : "it read something else";
    }));
}

// Nothing larger can be pinned, so the memory is pageable. A smaller call gets the old pinned block
// again.
void test_outgrown_is_used_again(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        HostMemory memory;
        const std::byte* const small = memory.reserve(0, MiB);
        if (reserve_unpinned(memory, 3 * MiB) == nullptr || memory.is_pinned()) return "no pages";
        return memory.reserve(0, MiB) == small && memory.is_pinned() ? "" : "not what there was";
    }));
}

void test_without_devices(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        HostMemory memory;
        std::byte* const pages = memory.reserve(-1, MiB);
        if (pages == nullptr || memory.is_pinned()) return "no pages";
        if (memory.reserve(-1, MiB) != pages) return "others for as much";
        return memory.reserve(-1, 2 * MiB) != nullptr && pinned() == 0 ? "" : "no more";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_large_blocks_do_not_stay),
        cmocka_unit_test(test_nothing_to_pin),
        cmocka_unit_test(test_pages_of_a_copy_that_does_not_end),
        cmocka_unit_test(test_outgrown_is_used_again),
        cmocka_unit_test(test_without_devices),
    };
    return hier::test::run_cases(argc, argv, "host_memory", tests);
}
