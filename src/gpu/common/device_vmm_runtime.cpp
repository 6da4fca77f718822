// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/device_vmm_runtime.hpp"

#include <cstdint>

#include "gpu/common/report.hpp"
#include "gpu/common/stream_queue.hpp"

namespace hier::gpu {
namespace {

// A handle is a number on CUDA and a pointer on ROCm.
static_assert(sizeof(hipMemGenericAllocationHandle_t) == sizeof(VmmHandle));
hipMemGenericAllocationHandle_t native(VmmHandle handle)
{
    return (hipMemGenericAllocationHandle_t)handle;
}

}  // namespace

bool DeviceVmmRuntime::find_segments(const std::byte* address, std::size_t bytes, int device,
                                     std::vector<VmmSegment>& segments) const
{
    segments.clear();
    if (!shares_segments_) return false;
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    const std::byte* const end = address + bytes;
    while (error == hipSuccess && address < end) {
        VmmSegment segment{};
        error = inspect_segment(address, segment);
        if (error != hipSuccess) break;
        if (segment.base + segment.length <= address) return false;
        segments.push_back(segment);
        address = segment.base + segment.length;
    }
    if (error != hipSuccess) (void)hipGetLastError();
    return error == hipSuccess && !segments.empty();
}

int DeviceVmmRuntime::export_segment(const VmmSegment& segment) const
{
    const CapturePass pass;
    hipMemGenericAllocationHandle_t handle{};
    hipError_t error = hipMemRetainAllocationHandle(&handle, segment.base);
    int descriptor = -1;
    if (error == hipSuccess) {
        error = hipMemExportToShareableHandle(&descriptor, handle,
                                              hipMemHandleTypePosixFileDescriptor, 0);
        (void)hipMemRelease(handle);
    }
    if (error == hipSuccess) return descriptor;
    (void)hipGetLastError();
    return -1;
}

Status DeviceVmmRuntime::import_segment(int descriptor, int device, VmmHandle& handle) const
{
    hipMemGenericAllocationHandle_t imported{};
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess)
        error = hipMemImportFromShareableHandle(
            &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
            hipMemHandleTypePosixFileDescriptor);
    static std::atomic<bool> is_told{false};
    if (error != hipSuccess)
        return refused_with(error, "importing a segment of a peer's memory", is_told);
    handle = (VmmHandle)imported;
    return Status::ok;
}

void DeviceVmmRuntime::release_segment(VmmHandle handle) const
{
    const CapturePass pass;
    if (hipMemRelease(native(handle)) != hipSuccess) (void)hipGetLastError();
}

std::byte* DeviceVmmRuntime::reserve_addresses(std::size_t bytes) const
{
    const CapturePass pass;
    void* base = nullptr;
    const hipError_t error = hipMemAddressReserve(&base, bytes, 0, nullptr, 0);
    if (error == hipSuccess) return static_cast<std::byte*>(base);
    (void)failed_with(error, "reserving addresses");
    return nullptr;
}

void DeviceVmmRuntime::free_addresses(std::byte* base, std::size_t bytes) const
{
    const CapturePass pass;
    if (hipMemAddressFree(base, bytes) != hipSuccess) (void)hipGetLastError();
}

Status DeviceVmmRuntime::map_segment(VmmHandle handle, int device, std::byte* at,
                                     std::size_t bytes) const
{
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = hipMemMap(at, bytes, 0, native(handle), 0);
    static std::atomic<bool> is_told{false};
    if (error != hipSuccess)
        return refused_with(error, "mapping a segment of a peer's memory", is_told);
    hipMemAccessDesc access{};
    access.location.type = hipMemLocationTypeDevice;
    access.location.id = device;
    access.flags = hipMemAccessFlagsProtReadWrite;
    error = hipMemSetAccess(at, bytes, &access, 1);
    if (error == hipSuccess) return Status::ok;
    (void)hipMemUnmap(at, bytes);
    return refused_with(error, "access to a segment of a peer's memory", is_told);
}

bool DeviceVmmRuntime::unmap_segment(std::byte* at, std::size_t bytes) const
{
    if (!StreamQueue::finish_all()) return false;
    const CapturePass pass;
    const hipError_t error = hipMemUnmap(at, bytes);
    if (error != hipSuccess) (void)hipGetLastError();
    return error == hipSuccess;
}

}  // namespace hier::gpu
