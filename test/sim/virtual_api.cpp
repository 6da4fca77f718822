// SPDX-License-Identifier: BSD-3-Clause
// HIP's functions for virtual memory management.
#include "calls.hpp"
#include "stream.hpp"
#include "virtual.hpp"

using namespace hip_sim;

namespace {

template <class Body> hipError_t locked(Body&& body)
{
    const std::lock_guard lock(virtual_mutex());
    return body();
}

}  // namespace

hipError_t hipMemGetAllocationGranularity(std::size_t* bytes, const hipMemAllocationProp* wanted,
                                          hipMemAllocationGranularity_flags)
{
    return counted(broken, [&] {
        if (bytes == nullptr || wanted == nullptr) return hipErrorInvalidValue;
        *bytes = granularity;
        return hipSuccess;
    });
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* handle, std::size_t bytes,
                        const hipMemAllocationProp* wanted, unsigned long long flags)
{
    return counted(forbidden_by_capture, no_memory, [&] {
        if (flags != 0) return hipErrorInvalidValue;
        return locked([&] { return create(handle, bytes, wanted); });
    });
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    return uncounted(forbidden_by_capture, [&] { return locked([&] { return release(handle); }); });
}

hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle, void* address)
{
    return counted(broken, [&] {
        if (options().version < 71400000)
            give_up("hipMemRetainAllocationHandle keeps no count before HIP 7.14, or crashes");
        return locked([&] { return retain(handle, address); });
    });
}

hipError_t hipMemExportToShareableHandle(void* out, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
    return counted(broken, [&] {
        if (flags != 0) return hipErrorInvalidValue;
        return locked([&] { return share(out, handle, type); });
    });
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle, void* shared,
                                           hipMemAllocationHandleType type)
{
    const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(shared));
    return counted(forbidden_by_capture, broken,
                   [&] { return locked([&] { return take(handle, fd, type); }); });
}

hipError_t hipMemAddressReserve(void** base, std::size_t bytes, std::size_t alignment, void* wanted,
                                unsigned long long flags)
{
    return counted(forbidden_by_capture, no_memory, [&] {
        if (base == nullptr || bytes == 0 || bytes % granularity != 0 || flags != 0)
            return hipErrorInvalidValue;
        if (alignment != 0 || wanted != nullptr)
            give_up("hipMemAddressReserve at an address or alignment is not simulated");
        return locked([&] { return reserve(base, bytes); });
    });
}

hipError_t hipMemAddressFree(void* base, std::size_t bytes)
{
    return uncounted(forbidden_by_capture,
                     [&] { return locked([&] { return give_back(base, bytes); }); });
}

hipError_t hipMemMap(void* at, std::size_t bytes, std::size_t offset,
                     hipMemGenericAllocationHandle_t handle, unsigned long long flags)
{
    return counted(forbidden_by_capture, broken, [&] {
        if (offset != 0 || flags != 0) return hipErrorInvalidValue;
        return locked([&] { return map(static_cast<std::byte*>(at), bytes, handle); });
    });
}

hipError_t hipMemSetAccess(void* at, std::size_t bytes, const hipMemAccessDesc* access,
                           std::size_t count)
{
    return counted(forbidden_by_capture, broken, [&] {
        return locked([&] { return allow(static_cast<std::byte*>(at), bytes, access, count); });
    });
}

hipError_t hipMemUnmap(void* at, std::size_t bytes)
{
    return uncounted(forbidden_by_capture, [&] {
        (void)wait_for(outstanding_on(-1));
        return locked([&] { return unmap(static_cast<std::byte*>(at), bytes); });
    });
}
