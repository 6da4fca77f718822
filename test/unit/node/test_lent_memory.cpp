// SPDX-License-Identifier: BSD-3-Clause
// Device memory that the process lends, to the staging of derived datatypes and to device cells. On
// simulated devices.
#include <vector>

#include "test/support/device_process.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::uint64_t allocations() { return hip_sim_live("allocations"); }

int device_of(const void* address)
{
    Allocation memory;
    (void)gpu::inspect(address, memory);
    return memory.kind == MemoryKind::device ? memory.device : -1;
}

void test_what_is_given_back_is_lent_again(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        const std::byte* const like = device_memory(64);
        const auto before = allocations();
        void* const large = hier_memory_borrow(like, 20 * MiB);
        void* const small = hier_memory_borrow(like, 1);
        if (large == nullptr || small == nullptr || large == small) return "none";
        hier_memory_give_back(large);
        hier_memory_give_back(small);
        hier_memory_give_back(nullptr);
        if (hier_memory_borrow(like, 4 * MiB) != small) return "the large one for little";
        if (hier_memory_borrow(like, 64 * MiB) != large) return "not the large one";
        return allocations() == before + 2 ? "" : "more than two were made";
    }));
}

void test_the_device_of_the_memory(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)hipSetDevice(1);
        const std::byte* const like = device_memory(64);
        (void)hipSetDevice(0);
        const std::byte* const other = device_memory(64);
        void* const lent = hier_memory_borrow(like, 100);
        if (device_of(lent) != 1) return "another device's";
        hier_memory_give_back(lent);
        if (device_of(hier_memory_borrow(other, 100)) != 0) return "that of another device";
        int current = -1;
        (void)hipGetDevice(&current);
        if (current != 0) return "the current device is another";
        std::vector<char> host(64);
        return hier_memory_borrow(host.data(), 100) == nullptr ? "" : "for memory of the host";
    }));
}

// The whole block is device memory, with whatever length it was asked for.
void test_the_length(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        const std::byte* const like = device_memory(64);
        for (const std::size_t bytes : {std::size_t{1}, 4 * MiB, 4 * MiB + 1, HIER_MAX_LENT}) {
            auto* const lent = static_cast<std::byte*>(hier_memory_borrow(like, bytes));
            if (lent == nullptr) return "none of " + std::to_string(bytes);
            put(lent + bytes - 1, Bytes(1, 7));
            if (get(lent + bytes - 1, 1) != Bytes(1, 7)) return "not all of it is there";
        }
        return "";
    }));
}

// Failed calls keep their blocks for good, up to a limit. A refusal costs only this memory.
void test_there_is_an_end(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        const std::byte* const like = device_memory(64);
        void* last = nullptr;
        int lent = 0;
        while (void* const next = hier_memory_borrow(like, 1)) {
            last = next;
            if (++lent > 100) return "no end";
        }
        hier_memory_give_back(last);
        if (hier_memory_borrow(like, 1) != last) return "not even what is given back";
        hier_memory_give_back(last);
        hip_sim_fail_at(hip_sim_calls() + 4);
        const bool has_failed = hier_memory_borrow(like, 5 * MiB) == nullptr;
        hip_sim_fail_at(0);
        return has_failed && hier_memory_borrow(like, 5 * MiB) != nullptr ? ""
                                                                          : "no memory for good";
    }));
}

// What staging borrows counts as kept. Beyond the limit there is none.
void test_staging_has_a_limit(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        const std::byte* const like = device_memory(64);
        void* const first = hier_memory_borrow(like, HIER_MAX_LENT);
        if (first == nullptr || hier_memory_borrow(like, HIER_MAX_LENT) == nullptr)
            return "not two of the largest";
        if (hier_memory_borrow(like, 1) != nullptr) return "more than the limit";
        hier_memory_give_back(first);
        return hier_memory_borrow(like, 1) == first ? "" : "not what is given back";
    }));
}

// Each call of the runtime fails in turn. A block that exists already is not freed, because that
// could mean to wait. It is used the next time.
void test_failing_calls(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        const std::byte* const like = device_memory(64);
        const auto before = allocations();
        int refused = 0;
        bool was_hit = true;
        for (std::uint64_t n = 1; was_hit; n++) {
            const auto call = hip_sim_calls() + n;
            hip_sim_fail_at(call);
            void* const lent = hier_memory_borrow(like, 1);
            was_hit = hip_sim_calls() >= call;
            hip_sim_fail_at(0);
            refused += lent == nullptr ? 1 : 0;
            hier_memory_give_back(lent);
            if (allocations() > before + 1) return "more than one was made";
        }
        return refused > 1 && allocations() == before + 1 ? "" : "nothing failed";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_given_back_is_lent_again),
        cmocka_unit_test(test_the_device_of_the_memory),
        cmocka_unit_test(test_the_length),
        cmocka_unit_test(test_there_is_an_end),
        cmocka_unit_test(test_staging_has_a_limit),
        cmocka_unit_test(test_failing_calls),
    };
    return hier::test::run_cases(argc, argv, "lent_memory", tests);
}
