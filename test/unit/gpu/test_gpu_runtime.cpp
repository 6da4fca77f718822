// SPDX-License-Identifier: BSD-3-Clause
// The core finds a GPU runtime as soon as the process uses one, and logs nothing if there is none.
// This program is not linked with HIP. It loads the simulated runtime as an application would load
// the real one.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/runtime.hpp"
#include "hier/hier.h"
#include "test/support/forked.hpp"
#include "test/support/reachable.hpp"
#include "test/support/simulated_runtime.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

// A thread that sets this waits once, after it has counted the libraries.
thread_local std::atomic<bool>* go_on = nullptr;
std::atomic<bool> is_held{false};

void wait_once()
{
    if (std::atomic<bool>* const until = std::exchange(go_on, nullptr)) {
        is_held = true;
        until->wait(false);
    }
}

using namespace hier;
using namespace hier::test;

// Runs `body` in a process of its own. The process must log nothing.
const char* quietly(std::string (*body)())
{
    return keep(first_fault(run_ranks(1, [&](ForkedRank&) -> std::string {
        setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 0);
        const int words = memfd_create("stderr", 0);
        dup2(words, STDERR_FILENO);
        const std::string fault = body();
        struct stat file {};
        if (!fault.empty() || fstat(words, &file) != 0) return fault + ".";
        if (file.st_size > 0) return "words on stderr";
        return ForkedRank::log_lines().empty() ? "" : "it logs: " + ForkedRank::log_lines();
    })));
}

void test_no_library(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        Allocation found;
        int variable = 0;
        if (gpu::runtime() != nullptr) return "there is one";
        if (!gpu::Inspector().finds_host_only()) return "there may be device memory";
        if (gpu::inspect(&variable, found) != Status::ok || found.kind != MemoryKind::host)
            return "a variable is no host memory";
        return gpu::used_device() == -1 ? "" : "a device is in use";
    }));
}

void test_a_library_that_is_loaded_later(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        const gpu::Runtime* found = gpu::runtime();
        if (found == nullptr) return "not found";
        if (gpu::Inspector().finds_host_only()) return "there is no device memory";
        if (found != gpu::runtime()) return "another one";
        const std::string name = found->name();  // with the headers' version
        return name.starts_with("ROCm 5.") && found->devices() == 8 ? "" : name;
    }));
}

// While one thread opens the runtime, the others must not take it for missing.
void test_threads(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        std::atomic<int> ready{0}, missing{0};
        std::vector<std::thread> threads;
        constexpr int many = 8;
        for (int i = 0; i < many; i++) {
            threads.emplace_back([&] {
                ready++;
                while (ready < many) std::this_thread::yield();
                if (gpu::runtime() == nullptr) missing++;
            });
        }
        for (std::thread& t : threads) t.join();
        return missing == 0 ? "" : std::to_string(missing) + " threads found none";
    }));
}

// Another thread opens the runtime after this thread has counted the libraries, and before this
// thread uses the count.
void test_a_thread_that_is_overtaken(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (gpu::runtime() != nullptr) return "too early";
        if (const auto fault = load(); !fault.empty()) return fault;
        std::atomic<bool> is_open{false}, is_through{false};
        bool is_found = false;
        after_dl_iterate_phdr = wait_once;
        std::thread overtaken([&] {
            go_on = &is_open;
            is_found = gpu::runtime() != nullptr;
            is_through = true;
        });
        while (!is_held && !is_through) std::this_thread::yield();
        const bool is_overtaken = !is_through;
        const bool is_found_here = gpu::runtime() != nullptr;
        is_open = true;
        is_open.notify_one();
        overtaken.join();
        if (!is_overtaken) return "it never counted the libraries";
        if (!is_found_here) return "not found";
        return is_found ? "" : "the other thread found none";
    }));
}

// What the program has itself is the host's, and the runtime is not asked.
void test_memory_of_the_program(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        if (const auto fault = load(); !fault.empty()) return fault;
        void* const library = dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_NOLOAD);
        std::uint64_t (*calls)() = nullptr;
        find(library, "hip_sim_calls", calls);
        int variable = 0;
        const void* const addresses[] = {&variable, simulated_memory()};
        hier_memory own{}, of_device{};
        hier_memory *ask_own = &own, *ask_device = &of_device;
        if (hier_memory_is_host(2, addresses) != 0) return "device memory passes for the host's";
        const std::uint64_t before = calls();
        hier_memory_inspect(1, addresses, &ask_own);
        if (hier_memory_is_host(1, addresses) == 0 || calls() != before) return "it was asked";
        hier_memory_inspect(1, addresses + 1, &ask_device);
        if (calls() == before) return "it was not asked for device memory";
        if (own.kind != HIER_MEMORY_HOST || own.is_reachable == 0)
            return "a variable is no host memory";
        return of_device.kind == HIER_MEMORY_DEVICE ? "" : "device memory is not known";
    }));
}

void test_no_device(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        setenv("HIP_SIM_DEVICES", "0", 1);
        if (const auto fault = load(); !fault.empty()) return fault;
        std::string reason;
        if (gpu::runtime() != nullptr || gpu::find_runtime(reason) != nullptr)
            return "there is one";
        return reason.find("hier_gpu_rocm.so: hipErrorNoDevice") != std::string::npos ? "" : reason;
    }));
}

// A runtime that fails to say how many devices there are. It may have some.
struct Broken {
    Broken()
    {
        if (const auto fault = load(); !fault.empty()) throw std::runtime_error(fault);
        void* const library = dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_NOLOAD);
        find(library, "hip_sim_fail_at", fail_at);
        find(library, "hip_sim_calls", calls);
        device = simulated_memory();
        // To load the module loads a library, so there is a second search, when libraries are counted again.
        for (int i = 0; i < 2; i++) {
            fail_next();
            if (gpu::runtime() != nullptr) throw std::runtime_error("it works");
            std::this_thread::sleep_for(std::chrono::milliseconds(12));
        }
    }
    void fail_next() const { fail_at(calls() + 1); }
    void (*fail_at)(std::uint64_t);
    std::uint64_t (*calls)();
    void* device = nullptr;
    void* const host = host_page();
};

// At the next address that the CPU cannot read, the runtime is asked again.
void test_a_runtime_that_fails_once(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        const Broken it;
        if (!is_reachable(it.host)) return "a page is no host memory";
        if (gpu::runtime() != nullptr) return "asked anew for the host's memory";
        if (is_reachable(it.device)) return "not known as a device's";
        return gpu::runtime() != nullptr && gpu::used_device() == 0 ? "" : "no runtime";
    }));
}

// At the first buffer the runtime works again. Then the second one is known, too.
void test_a_runtime_that_works_again_in_a_call(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        const Broken it;
        const void* const addresses[] = {it.device, it.device};
        hier_memory first{}, second{};
        hier_memory* const memories[] = {&first, &second};
        hier_memory_inspect(2, addresses, memories);
        if (first.kind != HIER_MEMORY_DEVICE) return "the first is not known";
        return second.kind == HIER_MEMORY_DEVICE ? "" : "the second is not known";
    }));
}

// While the runtime fails, device memory is an error. It never passes for host memory.
void test_a_runtime_that_goes_on_failing(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) -> std::string {
        setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 0);
        const Broken it;
        for (int i = 0; i < 3; i++) {
            it.fail_next();
            Allocation found;
            if (gpu::inspect(it.device, found) != Status::transport_error) return "no error";
            it.fail_next();
            if (gpu::Inspector().finds_host_only()) return "all memory passes for the host's";
            if (is_reachable(it.device)) return "it passes for the host's";
            if (!is_reachable(it.host)) return "a page is no host memory";
        }
        return ForkedRank::is_logged("no GPU runtime that works: hier_gpu_rocm.so: hipErrorUnknown")
                   ? ""
                   : ForkedRank::log_lines();
    }))));
}

void test_left_out(void**)
{
    expect_no_reason(quietly([]() -> std::string {
        gpu::choose_runtime(HIER_GPU_NONE);
        if (const auto fault = load(); !fault.empty()) return fault;
        if (gpu::runtime() != nullptr) return "there is one";
        gpu::choose_runtime(HIER_GPU_ROCM);
        return gpu::runtime() != nullptr ? "" : "not found when it was asked for";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_a_library_that_is_loaded_later),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_thread_that_is_overtaken),
        cmocka_unit_test(test_memory_of_the_program),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_a_runtime_that_fails_once),
        cmocka_unit_test(test_a_runtime_that_works_again_in_a_call),
        cmocka_unit_test(test_a_runtime_that_goes_on_failing),
        cmocka_unit_test(test_left_out),
    };
    return hier::test::run_cases(argc, argv, "gpu_runtime", tests);
}
