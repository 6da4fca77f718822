// SPDX-License-Identifier: BSD-3-Clause
// Device memory that an application maps itself (cuMemMap, hipMemMap), shared between processes.
// PyTorch's expandable segments are of this kind: a range of addresses is reserved first, and gets
// its memory segment by segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hier/status.hpp"

namespace hier::gpu {

// The memory of one mapping of the application.
struct VmmSegment {
    std::byte* base;
    std::size_t length;
    std::uint64_t id;  // never used again, even if another segment comes to the same address
};
// Another process's segment. Its memory lives until the handle is released.
using VmmHandle = std::uint64_t;

// The rules of Runtime on threads, devices and errors hold here too.
class VmmRuntime {
public:
    virtual ~VmmRuntime() = default;

    // The segments that hold these bytes of the device, in the order of their addresses. False:
    // there are none, or this runtime does not share segments.
    virtual bool find_segments(const std::byte* address, std::size_t bytes, int device,
                               std::vector<VmmSegment>& segments) const = 0;
    // Returns a file descriptor for another process; the caller closes the descriptor. -1: the
    // segment cannot be exported.
    virtual int export_segment(const VmmSegment& segment) const = 0;
    // Opens another process's segment for copies by `device`.
    virtual Status import_segment(int descriptor, int device, VmmHandle& handle) const = 0;
    virtual void release_segment(VmmHandle handle) const = 0;
    // Reserves addresses at which segments of others can be mapped. nullptr: the cause has been
    // logged.
    virtual std::byte* reserve_addresses(std::size_t bytes) const = 0;
    virtual void free_addresses(std::byte* base, std::size_t bytes) const = 0;
    virtual Status map_segment(VmmHandle handle, int device, std::byte* at,
                               std::size_t bytes) const = 0;
    // False: the segment stays mapped, because copies may still use its memory.
    virtual bool unmap_segment(std::byte* at, std::size_t bytes) const = 0;
};

}  // namespace hier::gpu
