// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/device_runtime.hpp"

#include <cstdio>
#include <cstring>
#include <exception>

#include "gpu/common/report.hpp"
#include "gpu/common/stream_queue.hpp"

namespace hier::gpu {
namespace {

// 12080 is CUDA 12.8, and 50221153 is ROCm 5.2.
std::string version_text(int version)
{
    const bool is_cuda = version < 1000000;
    const int major = version / (is_cuda ? 1000 : 10000000);
    const int minor = is_cuda ? version % 1000 / 10 : version / 100000 % 100;
    return std::string(platform_name) + ' ' + std::to_string(major) + '.' + std::to_string(minor);
}

// Uses the default stream of the memory's device. A wait for this stream is needed: CUDA returns
// from a copy out of pageable memory before the data has landed, and ROCm from a copy inside a
// device.
hipError_t copy_by_default_stream(const Copy& c)
{
    Allocation memory;
    hipError_t error = inspect_pointer(c.to, memory);
    if (error == hipSuccess && !is_of_device(memory)) error = inspect_pointer(c.from, memory);
    if (error != hipSuccess) return error;
    if (!is_of_device(memory)) return hipErrorInvalidValue;
    const DeviceScope scope(memory.device);
    error = scope.error();
    auto* to = static_cast<std::byte*>(c.to);
    const auto* from = static_cast<const std::byte*>(c.from);
    for (std::size_t row = 0; row < c.rows && error == hipSuccess; row++) {
        error = hipMemcpy(to, from, c.bytes, hipMemcpyDefault);
        to += c.to_pitch;
        from += c.from_pitch;
    }
    return error == hipSuccess ? hipStreamSynchronize(nullptr) : error;
}

}  // namespace

DeviceRuntime::DeviceRuntime(int devices, int version)
    : devices_(devices), name_(version_text(version)), vmm_(platform_shares_segments(version))
{
}

int DeviceRuntime::current_device() const
{
    int device = 0;
    return hipGetDevice(&device) == hipSuccess ? device : 0;
}

std::string DeviceRuntime::pci_address(int device) const
{
    char address[32] = "";
    if (hipDeviceGetPCIBusId(address, sizeof address, device) != hipSuccess) {
        (void)hipGetLastError();
        return "";
    }
    return address;
}

Status DeviceRuntime::inspect(const void* address, Allocation& allocation) const
{
    const CapturePass pass;
    const hipError_t error = inspect_pointer(address, allocation);
    return error == hipSuccess ? Status::ok : failed_with(error, "asking what a pointer is");
}

bool DeviceRuntime::is_there(const std::byte* base, std::uint64_t id, int device) const
{
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    VmmSegment now{};
    if (error == hipSuccess) error = inspect_segment(base, now);
    if (error != hipSuccess) (void)hipGetLastError();
    return error == hipSuccess && now.base == base && now.id == id;
}

bool DeviceRuntime::export_memory(const Allocation& allocation, IpcHandle& handle) const
{
    // Zeroed, because handles are compared, and ROCm does not write the last bytes.
    hipIpcMemHandle_t exported{};
    static_assert(sizeof exported == sizeof handle.bytes);
    const DeviceScope scope(allocation.device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = hipIpcGetMemHandle(&exported, allocation.base);
    if (error != hipSuccess) {
        (void)hipGetLastError();
        return false;
    }
    std::memcpy(handle.bytes.data(), &exported, sizeof exported);
    return true;
}

Status DeviceRuntime::map(const IpcHandle& handle, int device, std::byte*& base) const
{
    hipIpcMemHandle_t imported;
    std::memcpy(&imported, handle.bytes.data(), sizeof imported);
    void* mapped = nullptr;
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess)
        error = hipIpcOpenMemHandle(&mapped, imported, hipIpcMemLazyEnablePeerAccess);
    static std::atomic<bool> is_told{false};
    if (error != hipSuccess) return refused_with(error, "mapping a peer's memory", is_told);
    base = static_cast<std::byte*>(mapped);
    return Status::ok;
}

// Waits for all copies first. The memory stays mapped if a copy does not end.
void DeviceRuntime::unmap(std::byte* base, int device) const
{
    if (!StreamQueue::finish_all()) return;
    const DeviceScope scope(device);
    // This fails if the application has already reset its device. Then no mapping is left.
    if (hipIpcCloseMemHandle(base) != hipSuccess) (void)hipGetLastError();
}

bool DeviceRuntime::finish_copies() const { return StreamQueue::finish_all(); }

Status DeviceRuntime::flush_rdma(int device) const
{
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    if (error == hipSuccess) error = flush_rdma_writes();
    return error == hipSuccess ? Status::ok : failed_with(error, "flushing what a NIC has written");
}

std::unique_ptr<Queue> DeviceRuntime::make_queue(int device, WaitLimit limit) const
{
    try {
        return std::make_unique<StreamQueue>(device, limit);
    } catch (const std::exception&) {
        return nullptr;
    }
}

Status DeviceRuntime::copy_plainly(std::span<const Copy> copies) const
{
    const CapturePass pass;
    hipError_t error = hipSuccess;
    for (const Copy& c : copies) {
        if (error == hipSuccess) error = copy_by_default_stream(c);
    }
    return error == hipSuccess ? Status::ok : failed_with(error, "copying without a stream");
}

std::shared_ptr<const CpuWindow> DeviceRuntime::cpu_window(std::span<const std::byte> buffer,
                                                           const Allocation& memory,
                                                           std::string& reason) const
{
    try {
        return cpu_window_of(buffer, memory, reason);
    } catch (const std::exception& e) {
        reason = e.what();
        return nullptr;
    }
}

}  // namespace hier::gpu

extern "C" __attribute__((visibility("default"))) hier::gpu::Runtime*
hier_gpu_open_13(void (*log)(int level, const char* line), char* reason, std::size_t reason_bytes,
                 bool& is_broken);

extern "C" hier::gpu::Runtime* hier_gpu_open_13(void (*log)(int level, const char* line),
                                                char* reason, std::size_t reason_bytes,
                                                bool& is_broken)
{
    using namespace hier::gpu;
    // Lives as long as the process, because others may still use the runtime at exit.
    static Runtime* opened = nullptr;
    set_report(log);  // the last caller's log may be gone
    if (opened != nullptr) return opened;
    const char* cause = nullptr;
    int devices = 0, version = 0;
    if (!platform_open(cause)) {
        is_broken = true;
        std::snprintf(reason, reason_bytes, "%s", cause);
        return nullptr;
    }
    const CapturePass pass;
    hipError_t error = hipGetDeviceCount(&devices);
    if (error == hipSuccess) error = hipRuntimeGetVersion(&version);
    if (error != hipSuccess || devices == 0) {
        (void)hipGetLastError();
        is_broken = error != hipSuccess && error != hipErrorNoDevice;
        std::snprintf(reason, reason_bytes, "%s",
                      error == hipSuccess ? "no device" : hipGetErrorString(error));
        return nullptr;
    }
    try {
        opened = new DeviceRuntime(devices, version);
    } catch (const std::exception&) {
        is_broken = true;
        std::snprintf(reason, reason_bytes, "out of memory");
    }
    return opened;
}
