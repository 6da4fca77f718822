// SPDX-License-Identifier: BSD-3-Clause
// Tells in which memory an address lies, as HIP 5.2 does.
#include <cstring>

#include "calls.hpp"
#include "foreign.hpp"
#include "memory.hpp"

using namespace hip_sim;

namespace {

hipError_t describe(hipPointerAttribute_t* out, const void* address)
{
    if (out == nullptr || address == nullptr) return hipErrorInvalidValue;
    // HIP would take such memory for device 0's, and the process might hang at its end.
    if (passes_for_foreign(address)) give_up("hipPointerGetAttributes of memory that is not HIP's");
    const auto block = find(address);
    if (!block) return hipErrorInvalidValue;
    const bool is_on_device = block->is_on_device();
    *out = {};
    out->memoryType = is_on_device ? hipMemoryTypeDevice : hipMemoryTypeHost;
    out->device = block->device;
    out->devicePointer = const_cast<void*>(address);
    out->hostPointer = is_on_device ? nullptr : const_cast<void*>(address);
    out->isManaged = block->kind == Kind::managed ? 1 : 0;
    out->allocationFlags = block->flags;
    return hipSuccess;
}

// Writes 32 bits, although the attribute has 64.
hipError_t tell_id(void* out, hipPointer_attribute attribute, const void* address)
{
    if (attribute != HIP_POINTER_ATTRIBUTE_BUFFER_ID)
        give_up("hipPointerGetAttribute of %d is not simulated", static_cast<int>(attribute));
    if (out == nullptr || address == nullptr) return hipErrorInvalidValue;
    const auto block = find(address);
    if (!block) return hipErrorInvalidValue;
    const auto id = static_cast<std::uint32_t>(block->id);
    std::memcpy(out, &id, sizeof id);
    return hipSuccess;
}

hipError_t tell_range(hipDeviceptr_t* base, std::size_t* bytes, const void* address)
{
    if (base == nullptr || bytes == nullptr) return hipErrorInvalidValue;
    if (address != nullptr && passes_for_foreign(address)) {
        *base = reinterpret_cast<hipDeviceptr_t>(std::uintptr_t{0x100});
        *bytes = SIZE_MAX;
        return hipSuccess;
    }
    const auto block = find(address);
    if (!block) return hipErrorInvalidDevicePointer;
    *base = block->base;
    *bytes = block->bytes;
    return hipSuccess;
}

hipError_t tell_device_pointer(void** out, void* address, unsigned flags)
{
    if (flags != 0) give_up("hipHostGetDevicePointer with flags 0x%x is not simulated", flags);
    if (out == nullptr) return hipErrorInvalidValue;
    const auto block = find(address);
    if (!block || block->is_on_device() || block->kind == Kind::managed)
        return hipErrorInvalidValue;
    *out = address;
    return hipSuccess;
}

}  // namespace

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* address)
{
    return counted(broken, [&] { return describe(attributes, address); });
}

hipError_t hipPointerGetAttribute(void* out, hipPointer_attribute attribute, hipDeviceptr_t address)
{
    return counted(broken, [&] { return tell_id(out, attribute, address); });
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes, hipDeviceptr_t address)
{
    return counted(broken, [&] { return tell_range(base, bytes, address); });
}

hipError_t hipHostGetDevicePointer(void** device_pointer, void* address, unsigned flags)
{
    return counted(broken, [&] { return tell_device_pointer(device_pointer, address, flags); });
}
