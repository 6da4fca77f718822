// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gpu/common/device_memory_runtime.hpp"
#include "gpu/common/device_vmm_runtime.hpp"
#include "gpu/common/kernels.hpp"
#include "gpu/common/platform.hpp"

namespace hier::gpu {

class DeviceRuntime final : public Runtime {
public:
    DeviceRuntime(int devices, int version);

    const char* name() const override { return name_.c_str(); }
    Platform platform() const override { return gpu::platform; }
    int devices() const override { return devices_; }
    int current_device() const override;
    std::string pci_address(int device) const override;
    bool gives_turns(int device) const override { return platform_gives_turns(device); }
    Status inspect(const void* address, Allocation& allocation) const override;
    bool is_there(const std::byte* base, std::uint64_t id, int device) const override;
    bool export_memory(const Allocation& allocation, IpcHandle& handle) const override;
    Status map(const IpcHandle& handle, int device, std::byte*& base) const override;
    void unmap(std::byte* base, int device) const override;
    const MemoryRuntime& memory() const override { return memory_; }
    const VmmRuntime& vmm() const override { return vmm_; }
    bool finish_copies() const override;
    std::unique_ptr<Queue> make_queue(int device, WaitLimit limit) const override;
    bool has_kernels(int device) const override
    {
        return are_kernels_installed() && platform_runs_kernels(device);
    }
    Status copy_plainly(std::span<const Copy> copies) const override;
    bool needs_acquire() const override { return platform_needs_acquire; }
    Contexts leave_contexts() const override { return take_contexts(); }
    void enter_contexts(const Contexts& contexts) const override { give_contexts(contexts); }
    RdmaFlush rdma_flush(int device) const override { return rdma_flush_of(device); }
    Status flush_rdma(int device) const override;
    std::shared_ptr<const CpuWindow> cpu_window(std::span<const std::byte> buffer,
                                                const Allocation& memory,
                                                std::string& reason) const override;
    void release_cpu_windows() const override { forget_cpu_windows(); }

private:
    int devices_;
    std::string name_;
    DeviceMemoryRuntime memory_;
    DeviceVmmRuntime vmm_;
};

}  // namespace hier::gpu
