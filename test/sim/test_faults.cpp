// SPDX-License-Identifier: BSD-3-Clause
// Failures on request, counts, and the report at the end.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "checks.hpp"

#include "test/support/cmocka.hpp"

namespace hip_sim::test {

using hier::test::expect_no_reason;
using hier::test::ForkedRank;

namespace {

int threads()
{
    DIR* tasks = opendir("/proc/self/task");
    int count = 0;
    while (readdir(tasks) != nullptr) count++;
    closedir(tasks);
    return count - 2;  // . and ..
}

std::string read(const std::string& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// Each call fails in turn. It returns an error and does nothing, and the next call is well.
void test_failing_calls(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_FAIL", "2"}}, [] {
        void* memory = nullptr;
        gives(hipMalloc(&memory, 64));
        void* none = nullptr;
        gives(hipMalloc(&none, 64), hipErrorOutOfMemory);
        require(none == nullptr && live("allocations") == 1 && calls() == 2);
        gives(hipMalloc(&none, 64));
        gives(hipFree(none));
        require(calls() == 3);

        hipStream_t other = nullptr;
        hipEvent_t done = nullptr;
        hipIpcMemHandle_t handle{};
        const std::function<hipError_t()> each[] = {
            [&] { return hipStreamCreateWithFlags(&other, hipStreamNonBlocking); },
            [&] { return hipEventCreateWithFlags(&done, hipEventDisableTiming); },
            [&] { return hipHostMalloc(&none, 64, 0); },
            [&] { return hipMemset(memory, 1, 64); },
            [&] { return hipMemcpyAsync(none, memory, 64, hipMemcpyDefault, other); },
            [&] { return hipEventRecord(done, other); },
            [&] { return hipEventSynchronize(done); },
            [&] { return hipIpcGetMemHandle(&handle, memory); },
        };
        std::size_t at = 0;
        for (const auto& call : each) {
            fail_at(calls() + 1);
            const auto before = calls();
            gives(call(), at++ < 3 ? hipErrorOutOfMemory : hipErrorUnknown);
            gives(call());
            require(calls() == before + 2);
        }
        require(live("streams") == 1 && live("events") == 1 && live("pinned") == 1);

        // Calls like these are never made to fail.
        const auto before = calls();
        fail_at(before + 1);
        gives(hipEventDestroy(done));
        gives(hipStreamDestroy(other));
        gives(hipHostFree(none));
        gives(hipFree(memory));
        require(std::string(hipGetErrorString(hipErrorNotReady)) == "hipErrorNotReady");
        require(calls() == before);
    }));
}

void test_failing_rank(void**)
{
    const Environment environment = {{"HIP_SIM_FAIL", "1"}, {"HIP_SIM_FAIL_RANK", "1"}};
    expect_no_reason(run(2, environment, [](ForkedRank& self) {
        int device = 0;
        gives(hipGetDevice(&device), self.rank() == 1 ? hipErrorUnknown : hipSuccess);
    }));
}

void test_failing_copy(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_FAIL_ASYNC", "2"}, slowly}, [] {
        auto* const from = device_memory(1000);
        auto* const to = device_memory(1000);
        put(from, pattern(1000, 1));
        const auto failing = stream();
        const auto well = stream();
        const auto first = event();
        const auto second = event();
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, failing));
        gives(hipEventRecord(first, failing));
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, failing));
        gives(hipEventRecord(second, failing));
        gives(hipEventSynchronize(first));
        gives(hipEventSynchronize(second), hipErrorUnknown);
        gives(hipEventQuery(first));
        gives(hipEventQuery(second), hipErrorUnknown);

        // The stream stays failed. Others fail only if they wait for this stream.
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, failing));
        gives(hipStreamSynchronize(failing), hipErrorUnknown);
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, well));
        gives(hipStreamSynchronize(well));
        gives(hipDeviceSynchronize(), hipErrorUnknown);
        gives(hipStreamWaitEvent(well, second, 0));
        gives(hipStreamSynchronize(well), hipErrorUnknown);
    }));
}

// Half of the copy is there, and the operations behind it in the stream wait.
void test_hanging_copy(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_HANG_ASYNC", "2"}}, [] {
        auto* const from = device_memory(1000);
        auto* const to = device_memory(1000);
        put(from, pattern(1000, 1));
        const auto hanging = stream();
        const auto well = stream();
        const auto first = event();
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, hanging));
        gives(hipEventRecord(first, hanging));
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, hanging));
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, well));
        gives(hipStreamSynchronize(well));
        gives(hipEventSynchronize(first));
        gives(hipStreamQuery(hanging), hipErrorNotReady);
        hang_at(0);
        gives(hipStreamSynchronize(hanging));
        hang_at(4);
        gives(hipMemcpyAsync(to, from, 1000, hipMemcpyDefault, well));
        gives(hipStreamQuery(well), hipErrorNotReady);
        hang_at(0);
        gives(hipDeviceSynchronize());
    }));
}

void test_last_error(void**)
{
    expect_no_reason(run_alone({}, [] {
        gives(hipSetDevice(99), hipErrorInvalidDevice);
        gives(hipSetDevice(0));
        gives(hipPeekAtLastError(), hipErrorInvalidDevice);
        gives(hipGetLastError(), hipErrorInvalidDevice);
        gives(hipGetLastError());
    }));
}

void test_report(void**)
{
    char directory[] = "/tmp/hip_sim.XXXXXX";
    assert_non_null(mkdtemp(directory));
    std::string report;
    const char* fault = run_alone({{"HIP_SIM_REPORT", directory}}, [&] {
        const pid_t child = fork();
        if (child == 0) {
            auto* const memory = device_memory(64);
            auto* const host = pinned_memory(64);
            gives(hipFree(device_memory(64)));
            const auto left = stream();
            gives(hipMemcpyAsync(host, memory, 64, hipMemcpyDefault, left));
            gives(hipStreamWriteValue64(left, host, 1, 0));
            std::exit(0);
        }
        int status = 0;
        require(waitpid(child, &status, 0) == child && status == 0);
        const std::filesystem::directory_iterator reports(directory);
        const auto path = reports->path().string();
        require(path.rfind(std::string(directory) + "/" + std::to_string(child) + ".", 0) == 0);
        const auto text = read(path);
        unlink(path.c_str());
        if (text != "calls 6\ncopies 1\nkernels 1\nby_graphs 0\nlive allocations 1\nlive pinned 1\n"
                    "live registrations 0\nlive mappings 0\nlive streams 1\nlive events 0\n"
                    "live segments 0\nlive handles 0\nlive reservations 0\n")
            throw std::runtime_error("the report is: " + text);
    });
    rmdir(directory);
    expect_no_reason(fault);
}

void test_no_device(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_DEVICES", "0"}}, [] {
        int count = -1;
        void* memory = nullptr;
        gives(hipGetDeviceCount(&count), hipErrorNoDevice);
        require(count == 0);
        gives(hipMalloc(&memory, 8), hipErrorNoDevice);
    }));
}

void test_nothing_before_the_first_use(void**)
{
    expect_no_reason(run_alone({}, [] {
        const int before = threads();
        auto* const memory = device_memory(8);
        require(threads() == before);
        put(memory, Bytes(8, 1));
        require(threads() == before + 1);
        const auto second = stream();
        require(threads() == before + 2);
        gives(hipStreamDestroy(second));
        // For a moment the kernel may still list a thread that has been joined.
        require(hier::test::await([&] { return threads() == before + 1; }));
    }));
}

void test_what_is_not_simulated(void**)
{
    expect_no_reason(run_alone({}, [] {
        const std::function<void()> each[] = {
            [] { (void)stream(7); },
            [] {
                hipEvent_t event = nullptr;
                gives(hipEventCreateWithFlags(&event, hipEventInterprocess));
            },
            [] { gives(hipMemcpy(device_memory(8), pinned_memory(8), 8, hipMemcpyKind(5))); },
            [] {
                std::uint64_t out = 0;
                gives(hipPointerGetAttribute(&out, HIP_POINTER_ATTRIBUTE_MAPPED, device_memory(8)));
            },
            [] {
                hipIpcMemHandle_t handle{};
                gives(hipIpcGetMemHandle(&handle, device_memory(8) + 1));
            },
            [] { gives(hipStreamSynchronize(hipStreamPerThread)); },
            [] {
                setenv("HIP_SIM_DEVICES", "many", 1);
                (void)device_memory(8);
            },
        };
        for (const auto& call : each) require(signal_of(call) == SIGABRT);

        // Children of a process that has used the runtime are not simulated either.
        const auto* const memory = device_memory(8);
        require(memory != nullptr);
        require(signal_of([] { (void)device_memory(8); }) == SIGABRT);
        require(signal_of([] {}) == 0);
    }));
}

}  // namespace hip_sim::test
