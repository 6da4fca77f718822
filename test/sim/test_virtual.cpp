// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: memory, addresses, and memory mapped at addresses.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include "checks.hpp"
#include "team/group.hpp"

#include "test/support/cmocka.hpp"

namespace hip_sim::test {

using hier::Group;
using hier::test::expect_no_reason;
using hier::test::ForkedRank;

namespace {

constexpr std::pair<const char*, const char*> sane{"HIP_SIM_VERSION", "71400000"};
constexpr std::size_t segment_bytes = 128 << 10;

hipMemGenericAllocationHandle_t create(int device, bool may_be_exported = true)
{
    hipMemAllocationProp wanted{};
    wanted.type = hipMemAllocationTypePinned;
    wanted.location = {hipMemLocationTypeDevice, device};
    wanted.requestedHandleType =
        may_be_exported ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
    hipMemGenericAllocationHandle_t handle{};
    gives(hipMemCreate(&handle, segment_bytes, &wanted, 0));
    return handle;
}

std::byte* reserve(std::size_t bytes)
{
    void* base = nullptr;
    gives(hipMemAddressReserve(&base, bytes, 0, nullptr, 0));
    return static_cast<std::byte*>(base);
}

void allow(void* at, std::size_t bytes, int device)
{
    hipMemAccessDesc access{};
    access.location = {hipMemLocationTypeDevice, device};
    access.flags = hipMemAccessFlagsProtReadWrite;
    gives(hipMemSetAccess(at, bytes, &access, 1));
}

// Opens another process's file.
int open_of(int process, int fd)
{
    const auto path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace

void test_mapped_segments(void**)
{
    expect_no_reason(run_alone({sane}, [] {
        std::byte* const base = reserve(4 * segment_bytes);
        const std::array handles{create(2), create(2)};
        for (std::size_t i = 0; i < 2; i++) {
            gives(hipMemMap(base + i * segment_bytes, segment_bytes, 0, handles[i], 0));
            gives(hipMemRelease(handles[i]));  // the mapping keeps it
        }
        gives(hipMemMap(base, segment_bytes, 0, handles[0], 0), hipErrorInvalidValue);
        const auto bytes = pattern(segment_bytes, 1);
        gives(hipMemcpy(base, bytes.data(), segment_bytes, hipMemcpyDefault), hipErrorInvalidValue);
        allow(base, 2 * segment_bytes, 2);
        require(signal_of([&] { (void)*reinterpret_cast<volatile char*>(base); }) == SIGSEGV);
        std::byte* const across = base + segment_bytes / 2 + 3;
        put(across, bytes);
        require(get(across, segment_bytes) == bytes);
        gives(hipMemcpy(across, base, 2 * segment_bytes, hipMemcpyDefault), hipErrorInvalidValue);

        hipDeviceptr_t found = nullptr;
        std::size_t length = 0;
        gives(hipMemGetAddressRange(&found, &length, base + segment_bytes + 5));
        require(found == base + segment_bytes && length == segment_bytes);
        hipPointerAttribute_t attributes{};
        gives(hipPointerGetAttributes(&attributes, base));
        require(attributes.memoryType == hipMemoryTypeDevice && attributes.device == 2);
        hipIpcMemHandle_t ipc{};
        gives(hipIpcGetMemHandle(&ipc, base), hipErrorInvalidValue);
        require(live("segments") == 2 && live("handles") == 2 && live("reservations") == 1);

        gives(hipMemUnmap(base, segment_bytes / 2), hipErrorInvalidValue);
        gives(hipMemAddressFree(base, 4 * segment_bytes), hipErrorInvalidValue);
        gives(hipMemUnmap(base, segment_bytes));
        gives(hipMemcpy(base + segment_bytes, bytes.data(), 1, hipMemcpyDefault));
        gives(hipMemcpy(across, bytes.data(), segment_bytes, hipMemcpyDefault),
              hipErrorInvalidValue);
        gives(hipMemUnmap(base + segment_bytes, segment_bytes));
        gives(hipMemAddressFree(base, 4 * segment_bytes));
        require(live("segments") == 0 && live("handles") == 0 && live("reservations") == 0);
    }));
}

void test_shared_segments(void**)
{
    expect_no_reason(run(2, {sane}, [](ForkedRank& self) {
        const Group group(self.group());
        const bool is_owner = self.rank() == 0;
        std::byte* const base = reserve(segment_bytes);
        const auto bytes = pattern(segment_bytes, 7);
        int fd = -1;
        if (is_owner) {
            const auto handle = create(0);
            gives(hipMemMap(base, segment_bytes, 0, handle, 0));
            allow(base, segment_bytes, 0);
            hipMemGenericAllocationHandle_t again{};
            gives(hipMemRetainAllocationHandle(&again, base + 9));
            require(again == handle && live("handles") == 1);
            gives(
                hipMemExportToShareableHandle(&fd, again, hipMemHandleTypePosixFileDescriptor, 0));
            gives(hipMemRelease(again));
        }
        const int owner = group.collect(static_cast<int>(getpid()))[0];
        const int number = group.collect(fd)[0];
        if (!is_owner) {
            fd = open_of(owner, number);
            hipMemGenericAllocationHandle_t handle{};
            const auto shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
            gives(hipMemImportFromShareableHandle(&handle, shared,
                                                  hipMemHandleTypePosixFileDescriptor));
            close(fd);
            gives(hipMemMap(base, segment_bytes, 0, handle, 0));
            allow(base, segment_bytes, 5);
            put(base, bytes);
            gives(
                hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0),
                hipErrorInvalidValue);
        }
        (void)group.collect(0);
        if (is_owner) require(get(base, segment_bytes) == bytes);
    }));
}

void test_what_has_no_handle(void**)
{
    expect_no_reason(run_alone({sane}, [] {
        hipMemGenericAllocationHandle_t handle{};
        gives(hipMemRetainAllocationHandle(&handle, device_memory(100)), hipErrorInvalidValue);
        int fd = -1;
        gives(hipMemExportToShareableHandle(&fd, create(0, false),
                                            hipMemHandleTypePosixFileDescriptor, 0),
              hipErrorInvalidValue);
    }));
    expect_no_reason(run_alone({}, [] {
        void* const memory = device_memory(100);
        hipMemGenericAllocationHandle_t handle{};
        require(signal_of([&] { (void)hipMemRetainAllocationHandle(&handle, memory); }) == SIGABRT);
    }));
}

}  // namespace hip_sim::test
