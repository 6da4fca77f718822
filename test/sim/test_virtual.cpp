// SPDX-License-Identifier: BSD-3-Clause
// Memory and addresses, each for itself, and the one mapped into the other.
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
constexpr std::size_t piece = 128 << 10;

hipMemGenericAllocationHandle_t create(int device, bool may_be_exported = true)
{
    hipMemAllocationProp wanted{};
    wanted.type = hipMemAllocationTypePinned;
    wanted.location = {hipMemLocationTypeDevice, device};
    wanted.requestedHandleType =
        may_be_exported ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
    hipMemGenericAllocationHandle_t handle{};
    gives(hipMemCreate(&handle, piece, &wanted, 0));
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

// Another process's file.
int open_of(int process, int fd)
{
    const auto path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace

void test_mapped_pieces(void**)
{
    expect_no_reason(run_alone({sane}, [] {
        std::byte* const base = reserve(4 * piece);
        const std::array handles{create(2), create(2)};
        for (std::size_t i = 0; i < 2; i++) {
            gives(hipMemMap(base + i * piece, piece, 0, handles[i], 0));
            gives(hipMemRelease(handles[i]));  // the mapping keeps it
        }
        gives(hipMemMap(base, piece, 0, handles[0], 0), hipErrorInvalidValue);
        const auto bytes = pattern(piece, 1);
        gives(hipMemcpy(base, bytes.data(), piece, hipMemcpyDefault), hipErrorInvalidValue);
        allow(base, 2 * piece, 2);
        require(signal_of([&] { (void)*reinterpret_cast<volatile char*>(base); }) == SIGSEGV);
        std::byte* const across = base + piece / 2 + 3;
        put(across, bytes);
        require(get(across, piece) == bytes);
        gives(hipMemcpy(across, base, 2 * piece, hipMemcpyDefault), hipErrorInvalidValue);

        hipDeviceptr_t found = nullptr;
        std::size_t length = 0;
        gives(hipMemGetAddressRange(&found, &length, base + piece + 5));
        require(found == base + piece && length == piece);
        hipPointerAttribute_t attributes{};
        gives(hipPointerGetAttributes(&attributes, base));
        require(attributes.memoryType == hipMemoryTypeDevice && attributes.device == 2);
        hipIpcMemHandle_t ipc{};
        gives(hipIpcGetMemHandle(&ipc, base), hipErrorInvalidValue);
        require(live("pieces") == 2 && live("handles") == 2 && live("reservations") == 1);

        gives(hipMemUnmap(base, piece / 2), hipErrorInvalidValue);
        gives(hipMemAddressFree(base, 4 * piece), hipErrorInvalidValue);
        gives(hipMemUnmap(base, piece));
        gives(hipMemcpy(base + piece, bytes.data(), 1, hipMemcpyDefault));
        gives(hipMemcpy(across, bytes.data(), piece, hipMemcpyDefault), hipErrorInvalidValue);
        gives(hipMemUnmap(base + piece, piece));
        gives(hipMemAddressFree(base, 4 * piece));
        require(live("pieces") == 0 && live("handles") == 0 && live("reservations") == 0);
    }));
}

void test_shared_pieces(void**)
{
    expect_no_reason(run(2, {sane}, [](ForkedRank& self) {
        const Group group(self.group());
        const bool is_owner = self.rank() == 0;
        std::byte* const base = reserve(piece);
        const auto bytes = pattern(piece, 7);
        int fd = -1;
        if (is_owner) {
            const auto handle = create(0);
            gives(hipMemMap(base, piece, 0, handle, 0));
            allow(base, piece, 0);
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
            gives(hipMemMap(base, piece, 0, handle, 0));
            allow(base, piece, 5);
            put(base, bytes);
            gives(
                hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0),
                hipErrorInvalidValue);
        }
        (void)group.collect(0);
        if (is_owner) require(get(base, piece) == bytes);
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
