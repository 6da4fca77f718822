// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gpu/common/platform.hpp"

namespace hier::gpu {

class DeviceVmmRuntime final : public VmmRuntime {
public:
    explicit DeviceVmmRuntime(bool shares_segments) : shares_segments_(shares_segments) {}

    bool find_segments(const std::byte* address, std::size_t bytes, int device,
                       std::vector<VmmSegment>& segments) const override;
    int export_segment(const VmmSegment& segment) const override;
    Status import_segment(int descriptor, int device, VmmHandle& handle) const override;
    void release_segment(VmmHandle handle) const override;
    std::byte* reserve_addresses(std::size_t bytes) const override;
    void free_addresses(std::byte* base, std::size_t bytes) const override;
    Status map_segment(VmmHandle handle, int device, std::byte* at,
                       std::size_t bytes) const override;
    bool unmap_segment(std::byte* at, std::size_t bytes) const override;

private:
    bool shares_segments_;
};

}  // namespace hier::gpu
