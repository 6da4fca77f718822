// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hier/gpu_memory.hpp"

namespace hier::gpu {

class DeviceMemoryRuntime final : public MemoryRuntime {
public:
    std::byte* allocate_device(int device, std::size_t bytes) const override;
    std::byte* allocate_for_kernels(int device, std::size_t bytes) const override;
    void free_device(int device, std::byte* memory) const override;
    std::byte* allocate_pinned(int device, std::size_t bytes) const override;
    void free_pinned(int device, std::byte* memory) const override;
    Status register_host(int device, void* memory, std::size_t bytes) const override;
    bool unregister_host(int device, void* memory) const override;
};

}  // namespace hier::gpu
