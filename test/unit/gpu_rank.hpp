// Forked ranks with memory of simulated devices. What asserts nothing else throws where it goes wrong.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../sim/hip_sim.h"
#include "forked.hpp"
#include "gpu/runtime.hpp"

namespace hier::test {

inline void gives_success(hipError_t error, const char* what)
{
    if (error != hipSuccess)
        throw std::runtime_error(std::string(what) + ": " + hipGetErrorName(error));
}

// The module of the build tree; before the first use.
inline void use_built_module() { setenv("HIER_GPU_MODULES", HIER_TEST_MODULES, 1); }

using Bytes = std::vector<unsigned char>;

// Of the current device; `pool`: of a kind that cannot be exported.
inline std::byte* device_memory(std::size_t bytes, bool pool = false)
{
    void* memory = nullptr;
    gives_success(pool ? hipMallocAsync(&memory, bytes, nullptr) : hipMalloc(&memory, bytes),
                  "allocating");
    return static_cast<std::byte*>(memory);
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
