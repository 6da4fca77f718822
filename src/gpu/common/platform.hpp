// SPDX-License-Identifier: BSD-3-Clause
// ROCm and CUDA differ in these: see platform_rocm.cpp and platform_cuda.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "gpu/common/capture_pass.hpp"
#include "gpu/common/names.hpp"
#include "hier/gpu.hpp"

namespace hier::gpu {

extern const char* const platform_name;
// Does memory that peers wrote have to be made visible to kernels that start afterwards?
extern const bool platform_needs_acquire;

extern const Platform platform;

// False, with a cause, where the platform cannot be used.
bool platform_open(const char*& cause);
// A pointer that the runtime does not know belongs to the host.
hipError_t inspect_pointer(const void* address, Allocation& allocation);

// Does this version of the runtime let processes share what an application has mapped itself?
bool platform_shares_segments(int version);
// A segment of the current device.
hipError_t inspect_segment(const std::byte* address, VmmSegment& segment);

// The context that the calling thread had, put back at the end. With a pass.
class DeviceScope {
public:
    explicit DeviceScope(int device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    hipError_t error() const { return error_; }

private:
    CapturePass pass_;
    std::intptr_t saved_ = -1;  // CUDA: the context; ROCm: the device, -1: it need not change
    hipError_t error_ = hipSuccess;
};

// The number of the device's context, which a reset of the device ends, with all that was made in it
// and must not be touched any more; 0: it has none. Makes none.
std::uint64_t context_of(int device);
// The same of the current device; quick.
std::uint64_t current_context();

// The calling thread's.
Contexts take_contexts();
void give_contexts(const Contexts& contexts);

// Waits for all that the stream has been given, `bound` at most, 0 standing for ever. False: it is
// still running. A copy that has failed is over, too.
bool finish(hipStream_t stream, std::chrono::milliseconds bound);

using TrialMemory = std::unique_ptr<void, void (*)(void*)>;

// Finds out, once in a process and by a trial where need be, which copies can be used. `stream` is
// one of the current device. hipErrorNotReady: the trial has not ended within the bound. `used`: its
// memory, to be given back when the application is done with the device: hipFree waits for its kernels.
hipError_t platform_try(hipStream_t stream, std::chrono::milliseconds bound, TrialMemory& used);

// The stream that takes the copies of a lane, from 0.
std::size_t stream_of(int lane);

// Asynchronous, in one stream. No compute unit takes part where the runtime allows that.
hipError_t copy_all(hipStream_t stream, std::span<const Copy> copies);
// The rows of one.
hipError_t copy_rows(hipStream_t stream, const Copy& copy);

// A copy that recurs, kept ready for one stream because that makes it quicker to start.
class PreparedCopy {
public:
    virtual ~PreparedCopy() = default;
    // Asynchronous. False: it has not been started, and has to be like any other.
    virtual bool start(hipStream_t stream, const Copy& copy) = 0;
};
// For the current device. nullptr: it would not be quicker.
std::unique_ptr<PreparedCopy> make_prepared_copy();

bool can_store_words(int device);
// Behind everything that the stream has been given, by no kernel.
hipError_t store_words(hipStream_t stream, std::span<const Word> words);

RdmaFlush rdma_flush_of(int device);
hipError_t flush_rdma_writes();  // into the current device

}  // namespace hier::gpu
