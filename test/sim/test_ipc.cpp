// SPDX-License-Identifier: BSD-3-Clause
// Memory of one process that another one maps.
#include <signal.h>

#include <cstring>

#include "checks.hpp"
#include "team/group.hpp"

#include "test/support/cmocka.hpp"

namespace hip_sim::test {

using hier::Group;
using hier::test::expect_no_reason;
using hier::test::ForkedRank;

namespace {

constexpr std::size_t bytes = 300000;

struct Handle {
    hipIpcMemHandle_t bytes;
};

// Returns the handle of the first process's memory.
hipIpcMemHandle_t exchange(const Group& group, std::byte* memory)
{
    Handle own{};
    if (memory != nullptr) gives(hipIpcGetMemHandle(&own.bytes, memory));
    return group.collect(own)[0].bytes;
}

}  // namespace

void test_ipc(void**)
{
    expect_no_reason(run(2, {}, [](ForkedRank& self) {
        const Group group(self.group());
        const bool is_owner = self.rank() == 0;
        auto* const memory = is_owner ? device_memory(bytes) : nullptr;
        if (is_owner) put(memory, pattern(bytes, 1));
        const auto handle = exchange(group, memory);
        if (!is_owner) {
            gives(hipSetDevice(5));
            void* mapped = nullptr;
            gives(hipIpcOpenMemHandle(&mapped, handle, hipIpcMemLazyEnablePeerAccess));
            gives(hipSetDevice(2));
            hipPointerAttribute_t attributes{};
            gives(hipPointerGetAttributes(&attributes, mapped));
            require(attributes.memoryType == hipMemoryTypeDevice && attributes.device == 5);
            hipDeviceptr_t base = nullptr;
            std::size_t length = 0;
            gives(hipMemGetAddressRange(&base, &length, static_cast<std::byte*>(mapped) + 1));
            require(base == mapped && length == bytes);
            require(signal_of([&] { (void)*static_cast<volatile char*>(mapped); }) == SIGSEGV);

            require(get(mapped, bytes) == pattern(bytes, 1));
            put(mapped, pattern(bytes, 2));
            require(live("mappings") == 1);
            gives(hipIpcCloseMemHandle(mapped));
            gives(hipIpcCloseMemHandle(mapped), hipErrorInvalidValue);
            require(live("mappings") == 0);
        }
        (void)group.collect(0);
        if (is_owner) require(get(memory, bytes) == pattern(bytes, 2));
    }));
}

// A mapping that was made in time stays. A handle that comes late finds nothing, although the
// address and the file descriptor are in use again.
void test_ipc_of_memory_that_was_freed(void**)
{
    expect_no_reason(run(2, {}, [](ForkedRank& self) {
        const Group group(self.group());
        const bool is_owner = self.rank() == 0;
        auto* const memory = is_owner ? device_memory(bytes) : nullptr;
        auto* const late = is_owner ? device_memory(bytes) : nullptr;
        if (is_owner) put(memory, pattern(bytes, 1));
        const auto handle = exchange(group, memory);
        const auto late_handle = exchange(group, late);
        void* mapped = nullptr;
        if (!is_owner) gives(hipIpcOpenMemHandle(&mapped, handle, 0));
        (void)group.collect(0);
        if (is_owner) {
            gives(hipFree(late));
            gives(hipFree(memory));
            require(device_memory(bytes) == memory);
            require(device_memory(bytes) == late);
        }
        (void)group.collect(0);
        if (!is_owner) {
            require(get(mapped, bytes) == pattern(bytes, 1));
            void* none = nullptr;
            gives(hipIpcOpenMemHandle(&none, late_handle, 0), hipErrorInvalidDevicePointer);
            require(none == nullptr);
        }
        (void)group.collect(0);
    }));
}

void test_ipc_refusals(void**)
{
    expect_no_reason(run(2, {}, [](ForkedRank& self) {
        const Group group(self.group());
        auto* const memory = device_memory(bytes);
        Handle own{};
        gives(hipIpcGetMemHandle(&own.bytes, memory));
        const auto all = group.collect(own);
        void* mapped = nullptr;
        void* again = nullptr;
        gives(hipIpcOpenMemHandle(&again, own.bytes, 0), hipErrorInvalidContext);
        const auto other = all[static_cast<std::size_t>(1 - self.rank())].bytes;
        gives(hipIpcOpenMemHandle(&mapped, other, 0));
        gives(hipIpcOpenMemHandle(&again, other, 0), hipErrorInvalidValue);

        hipIpcMemHandle_t handle{};
        gives(hipIpcOpenMemHandle(&again, handle, 0), hipErrorInvalidValue);
        gives(hipIpcGetMemHandle(&handle, mapped), hipErrorInvalidValue);
        gives(hipIpcGetMemHandle(&handle, pinned_memory(8)), hipErrorInvalidValue);
        gives(hipIpcGetMemHandle(&handle, &handle), hipErrorInvalidValue);
        gives(hipFree(mapped), hipErrorInvalidValue);
        gives(hipIpcCloseMemHandle(memory), hipErrorInvalidValue);
        (void)group.collect(0);

        // Memory whose mapping was closed may be mapped once more.
        gives(hipIpcCloseMemHandle(mapped));
        gives(hipIpcOpenMemHandle(&mapped, other, 0));
        (void)group.collect(0);
    }));
}

}  // namespace hip_sim::test
