// SPDX-License-Identifier: BSD-3-Clause
// The order of operations, and when they are done.
#include <algorithm>
#include <thread>

#include "checks.hpp"

#include "test/support/cmocka.hpp"

namespace hip_sim::test {

using hier::test::await;
using hier::test::expect_no_reason;

namespace {

constexpr std::size_t bytes = 65536;

// Returns a stream that is busy for a while.
hipStream_t busy_stream(unsigned flags = hipStreamNonBlocking)
{
    const auto busy = stream(flags);
    auto* const memory = device_memory(8);
    for (int i = 0; i < 20; i++) gives(hipMemsetAsync(memory, i, 8, busy));
    return busy;
}

}  // namespace

void test_copies_are_asynchronous(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        auto* const host = pinned_memory(bytes);
        put(device, pattern(bytes, 1));
        const auto busy = busy_stream();
        const auto copied = event();
        gives(hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, busy));
        gives(hipEventRecord(copied, busy));
        gives(hipEventQuery(copied), hipErrorNotReady);
        gives(hipStreamQuery(busy), hipErrorNotReady);
        require(host[0] == std::byte{0});
        gives(hipEventSynchronize(copied));
        gives(hipEventQuery(copied));
        require(get(host, bytes) == pattern(bytes, 1));
        gives(hipStreamSynchronize(busy));
        gives(hipStreamQuery(busy));
        gives(hipStreamDestroy(busy));
        gives(hipEventDestroy(copied));
    }));
}

void test_pageable_memory(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        Bytes host = pattern(bytes, 1);
        const auto busy = busy_stream();
        gives(hipMemcpyAsync(device, host.data(), bytes, hipMemcpyHostToDevice, busy));
        std::ranges::copy(pattern(bytes, 2), host.begin());
        gives(hipMemcpyAsync(host.data(), device, bytes, hipMemcpyDeviceToHost, busy));
        require(host == pattern(bytes, 2));
        require(get(device, bytes) == pattern(bytes, 2));
    }));
}

void test_half_a_copy_is_seen(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        auto* const host = pinned_memory(bytes);
        put(device, Bytes(bytes, 1));
        const auto copying = stream();
        const volatile auto* first = reinterpret_cast<volatile unsigned char*>(host);
        const volatile auto* last = first + bytes - 1;
        bool is_front_first = false;
        bool is_back_first = false;
        require(await([&] {
            gives(hipMemset(host, 0, bytes));
            gives(hipMemcpyAsync(host, device, bytes, hipMemcpyDefault, copying));
            while (hipStreamQuery(copying) == hipErrorNotReady) {
                const bool is_front = *first == 1;
                const bool is_back = *last == 1;
                is_front_first = is_front_first || (is_front && !is_back);
                is_back_first = is_back_first || (is_back && !is_front);
            }
            return is_front_first && is_back_first;
        }));
    }));
}

void test_streams_wait_for_events(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        auto* const middle = device_memory(bytes);
        auto* const host = pinned_memory(bytes);
        put(device, pattern(bytes, 1));
        const auto busy = busy_stream();
        const auto second = stream();
        const auto copied = event();
        gives(hipEventQuery(copied));  // not recorded yet
        gives(hipStreamWaitEvent(second, copied, 0));
        gives(hipMemcpyAsync(middle, device, bytes, hipMemcpyDefault, busy));
        gives(hipEventRecord(copied, busy));
        gives(hipStreamWaitEvent(second, copied, 0));
        gives(hipEventDestroy(copied));
        gives(hipMemcpyAsync(host, middle, bytes, hipMemcpyDefault, second));
        gives(hipStreamSynchronize(second));
        require(get(host, bytes) == pattern(bytes, 1));
    }));
}

void test_the_null_stream(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        Bytes some(8);
        auto* const memory = device_memory(8);
        const auto other = busy_stream(hipStreamNonBlocking);
        gives(hipMemcpy(memory, some.data(), 8, hipMemcpyDefault));
        gives(hipStreamQuery(other), hipErrorNotReady);

        const auto blocking = busy_stream(hipStreamDefault);
        gives(hipStreamQuery(nullptr), hipErrorNotReady);
        gives(hipMemcpy(memory, some.data(), 8, hipMemcpyDefault));
        gives(hipStreamQuery(blocking));

        // And the other way round.
        auto* const host = pinned_memory(bytes);
        for (int i = 1; i < 5; i++) gives(hipMemsetAsync(host, i, bytes, nullptr));
        gives(hipMemcpyAsync(memory, host, 8, hipMemcpyDefault, blocking));
        gives(hipStreamSynchronize(blocking));
        require(get(memory, 8) == Bytes(8, 4));
        gives(hipDeviceSynchronize());
        gives(hipStreamQuery(other));
    }));
}

void test_stream_writes(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        auto* const host = pinned_memory(bytes + 8);
        auto* const word = reinterpret_cast<std::uint64_t*>(host + bytes);
        put(device, pattern(bytes, 1));
        const auto writing = stream();
        gives(hipMemcpyAsync(host, device, bytes, hipMemcpyDefault, writing));
        gives(hipStreamWriteValue64(writing, word, 42, 0));
        require(await([&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) == 42; }));
        const auto* const got = reinterpret_cast<const unsigned char*>(host);
        require(Bytes(got, got + bytes) == pattern(bytes, 1));

        std::uint64_t unknown = 0;
        gives(hipStreamWriteValue64(writing, &unknown, 1, 0), hipErrorInvalidValue);
        gives(hipStreamWriteValue64(writing, host + 1, 1, 0), hipErrorInvalidValue);
    }));
}

void test_devices(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_DEVICES", "3"}}, [] {
        int count = 0;
        gives(hipGetDeviceCount(&count));
        require(count == 3);
        gives(hipSetDevice(3), hipErrorInvalidDevice);
        gives(hipSetDevice(2));
        int current = -1;
        std::thread([&] { gives(hipGetDevice(&current)); }).join();
        require(current == 0);
        gives(hipGetDevice(&current));
        require(current == 2);

        // The stream and the memory of device 2, the event of device 1, with device 1 current.
        auto* const memory = device_memory(bytes);
        const auto second = stream();
        gives(hipSetDevice(1));
        auto* const own = device_memory(bytes);
        put(memory, pattern(bytes, 1));
        gives(hipMemcpyAsync(own, memory, bytes, hipMemcpyDeviceToDevice, second));
        gives(hipEventRecord(event(), second), hipErrorInvalidHandle);
        gives(hipStreamSynchronize(second));
        require(get(own, bytes) == pattern(bytes, 1));

        char address[16] = "";
        gives(hipDeviceGetPCIBusId(address, sizeof address, 1));
        require(std::string(address) == "0000:1b:00.0");
        gives(hipDeviceGetPCIBusId(address, 5, 1), hipErrorInvalidValue);
        gives(hipDeviceGetPCIBusId(address, sizeof address, 3), hipErrorInvalidDevice);
        int least = 0;
        int greatest = 0;
        gives(hipDeviceGetStreamPriorityRange(&least, &greatest));
        require(greatest < least);
        hipStream_t urgent = nullptr;
        gives(hipStreamCreateWithPriority(&urgent, hipStreamNonBlocking, greatest));
    }));
}

void test_free_waits_for_copies(void**)
{
    expect_no_reason(run_alone({slowly}, [] {
        auto* const device = device_memory(bytes);
        auto* const host = pinned_memory(bytes);
        put(device, pattern(bytes, 1));
        const auto busy = busy_stream();
        gives(hipMemcpyAsync(host, device, bytes, hipMemcpyDefault, busy));
        gives(hipFree(device));
        gives(hipStreamQuery(busy));
        require(get(host, bytes) == pattern(bytes, 1));
    }));
}

void test_handles_that_are_none(void**)
{
    expect_no_reason(run_alone({}, [] {
        const auto gone = stream();
        const auto forgotten = event();
        gives(hipStreamDestroy(gone));
        gives(hipEventDestroy(forgotten));
        gives(hipStreamDestroy(gone), hipErrorInvalidHandle);
        gives(hipEventDestroy(forgotten), hipErrorInvalidHandle);
        gives(hipStreamSynchronize(gone), hipErrorInvalidHandle);
        gives(hipStreamQuery(gone), hipErrorInvalidHandle);
        gives(hipEventQuery(forgotten), hipErrorInvalidHandle);
        gives(hipEventRecord(forgotten, nullptr), hipErrorInvalidHandle);
        gives(hipMemsetAsync(device_memory(8), 0, 8, gone), hipErrorInvalidHandle);
    }));
}

}  // namespace hip_sim::test
