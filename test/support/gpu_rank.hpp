// SPDX-License-Identifier: BSD-3-Clause
// Forked ranks with memory of simulated devices. These functions throw if a call of HIP fails.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "forked.hpp"
#include "gpu/runtime.hpp"
#include "test/sim/hip_sim.h"

namespace hier::test {

#ifdef HIER_CUDA
extern "C" int cudaSetDevice(int device);
#endif

inline void gives_success(hipError_t error, const char* what)
{
    if (error != hipSuccess)
        throw std::runtime_error(std::string(what) + ": " + hipGetErrorName(error));
}

// Makes the device current. CUDA makes its context current, too.
inline void use_device(int device)
{
    gives_success(hipSetDevice(device), "hipSetDevice");
#ifdef HIER_CUDA
    gives_success(static_cast<hipError_t>(cudaSetDevice(device)), "cudaSetDevice");
#endif
}

// Makes the core load the module of the build tree. Call this before the first use of a GPU.
inline void use_built_module() { setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 1); }

// Versions of the simulated runtime: one shares memory that the application has mapped, one cannot.
inline constexpr const char* sharing_version = "100100000";
inline constexpr const char* not_sharing_version = "50221153";

using Bytes = std::vector<unsigned char>;

// Memory of the current device; `pool`: of a kind that cannot be exported.
inline std::byte* device_memory(std::size_t bytes, bool pool = false)
{
    void* memory = nullptr;
    gives_success(pool ? hipMallocAsync(&memory, bytes, nullptr) : hipMalloc(&memory, bytes),
                  "allocating");
    return static_cast<std::byte*>(memory);
}
// Memory as an application maps it: addresses first, then VMM segments.
inline constexpr std::size_t segment_bytes = 128 << 10;
inline std::byte* reserve(std::size_t bytes)
{
    void* base = nullptr;
    gives_success(hipMemAddressReserve(&base, bytes, 0, nullptr, 0), "reserving addresses");
    return static_cast<std::byte*>(base);
}
inline void map_segment(std::byte* at, int device, bool may_be_exported = true)
{
    hipMemAllocationProp wanted{};
    wanted.type = hipMemAllocationTypePinned;
    wanted.location = {hipMemLocationTypeDevice, device};
    if (may_be_exported) wanted.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    hipMemGenericAllocationHandle_t handle{};
    gives_success(hipMemCreate(&handle, segment_bytes, &wanted, 0), "hipMemCreate");
    gives_success(hipMemMap(at, segment_bytes, 0, handle, 0), "hipMemMap");
    gives_success(hipMemRelease(handle), "hipMemRelease");
    const hipMemAccessDesc access{wanted.location, hipMemAccessFlagsProtReadWrite};
    gives_success(hipMemSetAccess(at, segment_bytes, &access, 1), "hipMemSetAccess");
}
inline void unmap_segment(std::byte* at)
{
    gives_success(hipMemUnmap(at, segment_bytes), "hipMemUnmap");
}
inline std::byte* mapped_memory(std::size_t segments, int device, bool may_be_exported = true)
{
    std::byte* const base = reserve(segments * segment_bytes);
    for (std::size_t i = 0; i < segments; i++)
        map_segment(base + i * segment_bytes, device, may_be_exported);
    return base;
}

inline void put(std::byte* to, const Bytes& bytes)
{
    gives_success(hipMemcpy(to, bytes.data(), bytes.size(), hipMemcpyDefault), "writing");
}
inline Bytes get(const std::byte* from, std::size_t bytes)
{
    Bytes got(bytes);
    gives_success(hipMemcpy(got.data(), from, bytes, hipMemcpyDefault), "reading");
    return got;
}
inline Allocation allocation_of(const void* address)
{
    Allocation found;
    if (failed(gpu::inspect(address, found)) || found.kind != MemoryKind::device)
        throw std::runtime_error("not known as device memory");
    return found;
}

}  // namespace hier::test
