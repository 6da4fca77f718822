// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/device_memory_runtime.hpp"

#include "gpu/common/platform.hpp"
#include "gpu/common/report.hpp"
#include "gpu/common/stream_queue.hpp"

namespace hier::gpu {

std::byte* DeviceMemoryRuntime::allocate_device(int device, std::size_t bytes) const
{
    void* memory = nullptr;
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = hipMalloc(&memory, bytes);
    if (error != hipSuccess) (void)failed_with(error, "allocating device memory");
    return error == hipSuccess ? static_cast<std::byte*>(memory) : nullptr;
}

std::byte* DeviceMemoryRuntime::allocate_for_kernels(int device, std::size_t bytes) const
{
    void* memory = nullptr;
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = allocate_coherent(&memory, bytes);
    if (error != hipSuccess) (void)failed_with(error, "allocating device memory for kernels");
    return error == hipSuccess ? static_cast<std::byte*>(memory) : nullptr;
}

void DeviceMemoryRuntime::free_device(int device, std::byte* memory) const
{
    if (!StreamQueue::finish_all()) return;
    const DeviceScope scope(device);
    (void)hipFree(memory);
}

std::byte* DeviceMemoryRuntime::allocate_pinned(int device, std::size_t bytes) const
{
    void* memory = nullptr;
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = hipHostMalloc(&memory, bytes, hipHostMallocDefault);
    if (error != hipSuccess) (void)failed_with(error, "allocating pinned memory");
    return error == hipSuccess ? static_cast<std::byte*>(memory) : nullptr;
}

void DeviceMemoryRuntime::free_pinned(int device, std::byte* memory) const
{
    if (!StreamQueue::finish_all()) return;
    const DeviceScope scope(device);
    (void)hipHostFree(memory);
}

Status DeviceMemoryRuntime::register_host(int device, void* memory, std::size_t bytes) const
{
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = hipHostRegister(memory, bytes, hipHostRegisterDefault);
    static std::atomic<bool> is_told{false};
    return error == hipSuccess ? Status::ok
                               : refused_with(error, "registering host memory", is_told);
}

bool DeviceMemoryRuntime::unregister_host(int device, void* memory) const
{
    if (!StreamQueue::finish_all()) return false;
    const DeviceScope scope(device);
    (void)hipHostUnregister(memory);
    return true;
}

}  // namespace hier::gpu
