// SPDX-License-Identifier: BSD-3-Clause
// Kinds of memory, and which copies between them are allowed.
#include <signal.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "checks.hpp"

#include "test/support/cmocka.hpp"

namespace hip_sim::test {

using hier::test::expect_no_reason;

namespace {

constexpr std::size_t bytes = 100000;

std::uint64_t buffer_id(void* address)
{
    std::uint64_t id = 0;
    gives(hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, address));
    return id;
}

hipPointerAttribute_t attributes_of(const void* address)
{
    hipPointerAttribute_t attributes{};
    gives(hipPointerGetAttributes(&attributes, address));
    return attributes;
}

}  // namespace

void test_hidden_memory(void**)
{
    expect_no_reason(run_alone({}, [] {
        auto* const memory = device_memory(bytes);
        put(memory, pattern(bytes, 1));
        require(get(memory, bytes) == pattern(bytes, 1));
        require(signal_of([&] { (void)*reinterpret_cast<volatile char*>(memory); }) == SIGSEGV);
        require(signal_of([&] { *reinterpret_cast<volatile char*>(memory) = 1; }) == SIGSEGV);
        gives(hipFree(memory));
        require(signal_of([&] { (void)*reinterpret_cast<volatile char*>(memory); }) == SIGSEGV);
    }));
}

void test_memory_that_the_cpu_can_reach(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_HIDDEN", "0"}}, [] {
        auto* const memory = device_memory(bytes);
        put(memory, pattern(bytes, 2));
        require(static_cast<unsigned char>(memory[99]) == pattern(bytes, 2)[99]);
    }));
}

void test_memory_behind_a_large_bar(void**)
{
    expect_no_reason(run_alone({{"HIP_SIM_LARGE_BAR", "1"}}, [] {
        auto* const memory = device_memory(bytes);
        put(memory, pattern(bytes, 3));
        require(Bytes(reinterpret_cast<unsigned char*>(memory),
                      reinterpret_cast<unsigned char*>(memory) + bytes) == pattern(bytes, 3));
        const Bytes before = get(memory + 99, 5000), stored = pattern(5000, 4);
        std::memcpy(memory + 99, stored.data(), stored.size());
        require(get(memory + 99, 5000) == before);
        put(memory, Bytes(9, 7));  // beside stores that are not visible yet
        volatile std::uint32_t* flush = nullptr;
        gives(hipDeviceGetAttribute(reinterpret_cast<int*>(&flush),
                                    hipDeviceAttributeHdpMemFlushCntl, 1));
        require(static_cast<unsigned char>(memory[8]) == 7);
        *flush = 1;  // of another device
        require(get(memory + 99, 5000) != stored);
        gives(hipDeviceGetAttribute(reinterpret_cast<int*>(&flush),
                                    hipDeviceAttributeHdpMemFlushCntl, 0));
        *flush = 1;
        require(get(memory + 99, 5000) == stored && get(memory, 9) == Bytes(9, 7));
        put(memory, pattern(bytes, 5));
        require(static_cast<unsigned char>(memory[99]) == pattern(bytes, 5)[99]);
        gives(hipFree(memory));
        require(signal_of([&] { *reinterpret_cast<volatile char*>(memory) = 1; }) == SIGSEGV);
    }));
}

void test_attributes(void**)
{
    expect_no_reason(run_alone({}, [] {
        gives(hipSetDevice(3));
        auto* const device = device_memory(bytes);
        const auto of_device = attributes_of(device + 77);
        require(of_device.memoryType == hipMemoryTypeDevice && of_device.device == 3);
        require(of_device.devicePointer == device + 77 && of_device.isManaged == 0);

        hipDeviceptr_t base = nullptr;
        std::size_t length = 0;
        gives(hipMemGetAddressRange(&base, &length, device + bytes - 1));
        require(base == device && length == bytes);

        // The runtime writes only half of the id.
        std::uint64_t id = ~std::uint64_t{0};
        gives(hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, device));
        require(id >> 32 == 0xffffffff && (id & 0xffffffff) == buffer_id(device));

        auto* const pinned = pinned_memory(bytes);
        require(attributes_of(pinned).memoryType == hipMemoryTypeHost);
        require(attributes_of(pinned + 5).hostPointer == pinned + 5);
        void* seen = nullptr;
        gives(hipHostGetDevicePointer(&seen, pinned + 5, 0));
        require(seen == pinned + 5);

        void* managed = nullptr;
        gives(hipMallocManaged(&managed, bytes));
        require(attributes_of(managed).isManaged == 1);
        require(buffer_id(managed) != buffer_id(pinned) && buffer_id(managed) != buffer_id(device));
        *static_cast<char*>(managed) = 1;
        gives(hipFree(managed));
        gives(hipHostFree(pinned));
        gives(hipFree(device));
    }));
}

void test_unknown_memory(void**)
{
    expect_no_reason(run_alone({}, [] {
        int own = 0;
        hipPointerAttribute_t attributes{};
        std::uint64_t id = 0;
        hipDeviceptr_t base = nullptr;
        std::size_t length = 0;
        gives(hipPointerGetAttributes(&attributes, &own), hipErrorInvalidValue);
        gives(hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, &own),
              hipErrorInvalidValue);
        gives(hipMemGetAddressRange(&base, &length, &own), hipErrorInvalidDevicePointer);
        gives(hipFree(&own), hipErrorInvalidValue);
        gives(hipHostFree(&own), hipErrorInvalidValue);

        auto* const memory = device_memory(bytes);
        gives(hipPointerGetAttributes(&attributes, memory + bytes), hipErrorInvalidValue);
        gives(hipHostFree(memory), hipErrorInvalidValue);
        gives(hipFree(memory + 1), hipErrorInvalidValue);
        gives(hipFree(memory));
        gives(hipFree(memory), hipErrorInvalidValue);
        gives(hipFree(nullptr));
    }));
}

void test_an_address_that_comes_back(void**)
{
    expect_no_reason(run_alone({}, [] {
        auto* const first = device_memory(bytes);
        const auto first_id = buffer_id(first);
        put(first, pattern(bytes, 3));
        gives(hipFree(first));
        auto* const second = device_memory(bytes);
        require(second == first);
        require(buffer_id(second) != first_id);
        require(get(second, bytes) != pattern(bytes, 3));
        require(device_memory(bytes) != second);
    }));
}

void test_copies_of_rows(void**)
{
    expect_no_reason(run_alone({}, [] {
        constexpr std::size_t rows = 20, width = 5, pitch = 9;
        constexpr std::size_t span = (rows - 1) * pitch + width;  // the last row ends the memory
        auto* const device = device_memory(span);
        auto* const packed = pinned_memory(rows * width);
        put(device, pattern(span, 1));
        const auto copy = [&](std::size_t to_pitch, std::size_t from_pitch, std::size_t count) {
            return hipMemcpy2DAsync(packed, to_pitch, device, from_pitch, width, count,
                                    hipMemcpyDefault, nullptr);
        };
        gives(copy(width, pitch, rows));
        gives(hipStreamSynchronize(nullptr));
        for (std::size_t row = 0; row < rows; row++) {
            const auto all = pattern(span, 1);
            const Bytes wanted(all.data() + row * pitch, all.data() + row * pitch + width);
            require(get(packed + row * width, width) == wanted);
        }
        gives(copy(width - 1, pitch, rows), hipErrorInvalidPitchValue);
        gives(copy(width, width - 1, rows), hipErrorInvalidPitchValue);
        gives(copy(width, std::size_t{1} << 31, 1), hipErrorInvalidPitchValue);
        gives(copy(width, pitch, rows + 1), hipErrorInvalidValue);
        gives(copy(width, pitch + 1, rows), hipErrorInvalidValue);
    }));
}

void test_kinds_of_copies(void**)
{
    expect_no_reason(run_alone({}, [] {
        Bytes host(64);
        auto* const device = device_memory(64);
        auto* const other = device_memory(64);
        auto* const pinned = pinned_memory(64);
        const struct {
            void* to;
            const void* from;
            hipMemcpyKind fits;
        } copies[] = {
            {device, host.data(), hipMemcpyHostToDevice},
            {device, pinned, hipMemcpyHostToDevice},
            {host.data(), device, hipMemcpyDeviceToHost},
            {pinned, device, hipMemcpyDeviceToHost},
            {other, device, hipMemcpyDeviceToDevice},
            {pinned, host.data(), hipMemcpyHostToHost},
        };
        for (const auto& copy : copies) {
            gives(hipMemcpy(copy.to, copy.from, 64, hipMemcpyDefault));
            for (const auto kind : {hipMemcpyHostToHost, hipMemcpyHostToDevice,
                                    hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice}) {
                gives(hipMemcpy(copy.to, copy.from, 64, kind),
                      kind == copy.fits ? hipSuccess : hipErrorInvalidValue);
            }
        }
        void* managed = nullptr;
        gives(hipMallocManaged(&managed, 64));
        gives(hipMemcpy(managed, host.data(), 64, hipMemcpyHostToHost));
        gives(hipMemcpy(managed, host.data(), 64, hipMemcpyHostToDevice));
    }));
}

void test_copies_without_compute_units(void**)
{
    const auto copy = [](hipError_t wanted) {
        const auto kind = std::bit_cast<hipMemcpyKind>(1024);  // no value of this enum
        auto* const from = device_memory(64);
        auto* const to = device_memory(64);
        gives(hipMemcpyAsync(to, from, 64, kind, stream()), wanted);
        gives(hipMemcpyAsync(to, pinned_memory(64), 64, kind, stream()), hipErrorInvalidValue);
        gives(hipMemcpy(to, from, 64, kind), hipErrorInvalidValue);
    };
    expect_no_reason(run_alone({}, [&] { copy(hipErrorInvalidValue); }));
    expect_no_reason(run_alone({{"HIP_SIM_NOCU", "1"}}, [&] { copy(hipSuccess); }));
}

void test_copies_out_of_bounds(void**)
{
    expect_no_reason(run_alone({}, [] {
        auto* const memory = device_memory(100);
        auto* const pinned = pinned_memory(200);
        gives(hipMemcpy(memory + 1, pinned, 99, hipMemcpyDefault));
        gives(hipMemcpy(memory + 1, pinned, 100, hipMemcpyDefault), hipErrorInvalidValue);
        gives(hipMemcpy(pinned, memory + 1, 100, hipMemcpyDefault), hipErrorInvalidValue);
        gives(hipMemcpy(pinned, memory - 8, 16, hipMemcpyDefault), hipErrorInvalidValue);
        gives(hipMemcpy(nullptr, memory, 8, hipMemcpyDefault), hipErrorInvalidValue);
        gives(hipMemset(memory + 1, 0, 100), hipErrorInvalidValue);
        gives(hipMemset(memory + 1, 0x5a, 99));
        require(get(memory + 1, 99) == Bytes(99, 0x5a));
    }));
}

void test_registered_memory(void**)
{
    expect_no_reason(run_alone({}, [] {
        Bytes memory(bytes);
        gives(hipHostRegister(memory.data(), bytes, hipHostRegisterDefault));
        require(attributes_of(&memory[50]).memoryType == hipMemoryTypeHost);
        gives(hipHostRegister(&memory[50], 1, hipHostRegisterDefault),
              hipErrorHostMemoryAlreadyRegistered);
        require(live("registrations") == 1);
        gives(hipHostUnregister(&memory[50]), hipErrorHostMemoryNotRegistered);
        gives(hipHostUnregister(memory.data()));
        gives(hipHostUnregister(memory.data()), hipErrorHostMemoryNotRegistered);

        void* gone = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(gone, bytes);
        gives(hipHostRegister(gone, bytes, hipHostRegisterDefault), hipErrorInvalidValue);
    }));
}

void test_memory_of_a_pool(void**)
{
    expect_no_reason(run_alone({}, [] {
        const auto in_order = stream();
        void* memory = nullptr;
        gives(hipMallocAsync(&memory, bytes, in_order));
        require(attributes_of(memory).memoryType == hipMemoryTypeDevice);
        put(memory, pattern(bytes, 4));
        hipIpcMemHandle_t handle;
        gives(hipIpcGetMemHandle(&handle, memory), hipErrorInvalidValue);

        // The memory is freed behind the copy that was started before.
        auto* const to = pinned_memory(bytes);
        gives(hipMemcpyAsync(to, memory, bytes, hipMemcpyDefault, in_order));
        gives(hipFreeAsync(memory, in_order));
        gives(hipFreeAsync(memory, in_order), hipErrorInvalidValue);
        gives(hipStreamSynchronize(in_order));
        require(get(to, bytes) == pattern(bytes, 4));
        require(live("allocations") == 0);
    }));
}

}  // namespace hip_sim::test
