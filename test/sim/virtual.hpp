// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: memory without addresses is mapped at addresses without memory.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace hip_sim {

inline constexpr std::size_t granularity = 64 << 10;

// Hold this lock when you call the functions below, up to unmap().
std::mutex& virtual_mutex();

hipError_t create(hipMemGenericAllocationHandle_t* handle, std::size_t bytes,
                  const hipMemAllocationProp* wanted);
hipError_t retain(hipMemGenericAllocationHandle_t* handle, const void* address);
hipError_t release(hipMemGenericAllocationHandle_t handle);
hipError_t share(void* out, hipMemGenericAllocationHandle_t handle,
                 hipMemAllocationHandleType type);
hipError_t take(hipMemGenericAllocationHandle_t* handle, int shared,
                hipMemAllocationHandleType type);
hipError_t reserve(void** base, std::size_t bytes);
hipError_t give_back(void* base, std::size_t bytes);
hipError_t map(std::byte* at, std::size_t bytes, hipMemGenericAllocationHandle_t handle);
hipError_t allow(std::byte* at, std::size_t bytes, const hipMemAccessDesc* access,
                 std::size_t count);
hipError_t unmap(std::byte* at, std::size_t bytes);

// Do not hold the lock for these.
std::uint64_t live_handles();  // that the application or a mapping keeps
std::uint64_t live_reservations();

}  // namespace hip_sim
