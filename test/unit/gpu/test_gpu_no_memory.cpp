// SPDX-License-Identifier: BSD-3-Clause
// A process gets no more memory while it starts copies. Then either all copies are started and can
// be waited for, or none is started, now or later. The n-th allocation of a queue on a simulated
// device is refused.
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "test/support/gpu_rank.hpp"
#include "test/support/team_rank.hpp"

#include "test/support/cmocka.hpp"

namespace {

thread_local int left = 0;  // allocations of the module until one is refused; 0: none is refused

// Allocations of the simulated runtime are not refused, because a real runtime would return an
// error.
bool is_refused(void* caller)
{
    Dl_info from{};
    const bool is_of_module = left > 0 && dladdr(caller, &from) != 0 && from.dli_fname != nullptr &&
                              std::strstr(from.dli_fname, "hier_gpu_") != nullptr;
    return is_of_module && --left == 0;
}

}  // namespace

// Where these operators are inline, GCC 14 warns that free() gets memory of another operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes)
{
    void* const memory =
        is_refused(__builtin_return_address(0)) ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t bytes = 1000;

// Returns whether the n-th allocation was asked for at all.
bool refuse(int nth, std::byte* source, std::string& fault)
{
    const auto queue = gpu::runtime()->make_queue(0, {.bound = std::chrono::seconds(5)});
    const Bytes nothing(bytes);
    std::byte* const first = device_memory(bytes);
    std::byte* const second = device_memory(bytes);
    std::byte* const third = device_memory(bytes);
    for (std::byte* target : {first, second, third}) put(target, nothing);
    const std::array copies{gpu::Copy{first, source, bytes, 1},
                            gpu::Copy{second, source, bytes, 2}};
    std::uint64_t ticket = 0;
    bool is_refused = false;
    left = nth;
    try {
        if (failed(queue->start(copies, {}, ticket))) fault = "an error";
    } catch (const std::bad_alloc&) {
        is_refused = true;
    }
    left = 0;
    if (!is_refused) {
        if (queue->wait(ticket) != Status::ok || get(first, bytes) == nothing) fault = "not copied";
        return false;
    }
    const gpu::Copy other{third, source, bytes, 1};
    if (failed(queue->start({&other, 1}, {}, ticket)) || failed(queue->wait(ticket)))
        fault = "the next one fails";
    (void)gpu::runtime()->finish_copies();
    if (get(third, bytes) == nothing) fault = "the next one is not done";
    if (get(first, bytes) != nothing || get(second, bytes) != nothing)
        fault = "allocation " + std::to_string(nth) + ": copied all the same";
    return true;
}

void test_start_without_memory(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) -> std::string {
        use_built_module();
        const hier_config config = config_for_tests();
        hier_init(&config);
        if (gpu::runtime() == nullptr) return "no runtime";
        std::byte* const source = device_memory(bytes);
        put(source, Bytes(bytes, 7));
        std::string fault;
        int nth = 1;
        while (fault.empty() && refuse(nth, source, fault)) nth++;
        return fault.empty() && nth < 3 ? "none was refused" : fault;
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_start_without_memory),
    };
    return hier::test::run_cases(argc, argv, "gpu_no_memory", tests);
}
