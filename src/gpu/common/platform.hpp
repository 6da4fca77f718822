// SPDX-License-Identifier: BSD-3-Clause
// Where ROCm and CUDA differ. platform_rocm.cpp and the files in src/gpu/cuda implement this.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gpu/common/capture_pass.hpp"
#include "gpu/common/names.hpp"
#include "hier/gpu.hpp"

namespace hier::gpu {

extern const char* const platform_name;
// See Runtime::needs_acquire().
extern const bool platform_needs_acquire;

extern const Platform platform;

// See Runtime::gives_turns().
bool platform_gives_turns(int device);

// False: the platform cannot be used, and `cause` says why.
bool platform_open(const char*& cause);
// A pointer that the runtime does not know is one to host memory.
hipError_t inspect_pointer(const void* address, Allocation& allocation);

// Does this version of the runtime let processes share VMM segments?
bool platform_shares_segments(int version);
// The VMM segment or allocation of the current device that `address` lies in.
hipError_t inspect_segment(const std::byte* address, VmmSegment& segment);

// Makes `device` current in the calling thread, with a CapturePass. Puts the thread's own context
// back at the end.
class DeviceScope {
public:
    explicit DeviceScope(int device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    hipError_t error() const { return error_; }

private:
    CapturePass pass_;
    std::intptr_t saved_ = -1;  // CUDA: the context; ROCm: the device, or -1: no change
    hipError_t error_ = hipSuccess;
};

// The number of the device's context. 0: the device has none, and none is made. A reset of the
// device ends the context. All that was made in this context must not be touched any more.
std::uint64_t context_of(int device);
// The number of the current context. This is quick.
std::uint64_t current_context();

// See Runtime::leave_contexts().
Contexts take_contexts();
void give_contexts(const Contexts& contexts);

// Waits until the stream has done all its work. False: the wait has failed by its limit, and the
// stream still runs. A stream whose copy has failed does not run any more.
bool finish(hipStream_t stream, WaitLimit limit);

using TrialMemory = std::unique_ptr<void, void (*)(void*)>;

// Finds out which copies can be used, once in a process, by a trial if need be. `stream` belongs to
// the current device. hipErrorNotReady: the trial has exceeded its limit. `used` is the memory of
// the trial. Free it late, because hipFree waits for the application's kernels.
hipError_t platform_try(hipStream_t stream, WaitLimit limit, TrialMemory& used);

// Is the device one of those that the kernels are compiled for? This makes no context.
bool platform_runs_kernels(int device);
unsigned compute_units_of(int device);

// Device memory for words that other devices store while a kernel reads them.
hipError_t allocate_coherent(void** memory, std::size_t bytes);

// The number of the stream that takes the copies of a lane, from 0.
std::size_t stream_of(int lane);

// Asynchronous, in one stream. No compute unit takes part where the runtime allows that.
hipError_t copy_all(hipStream_t stream, std::span<const Copy> copies);
// One copy that has several rows.
hipError_t copy_rows(hipStream_t stream, const Copy& copy);

// A copy that recurs. It is kept ready for one stream, which makes its start quicker.
class PreparedCopy {
public:
    virtual ~PreparedCopy() = default;
    // Asynchronous. False: the copy has not been started, and the caller starts it like any other.
    virtual bool start(hipStream_t stream, const Copy& copy) = 0;
};
// For the current device. nullptr: prepared copies would not be quicker.
std::unique_ptr<PreparedCopy> make_prepared_copy();

// How a kernel of one argument starts.
struct KernelLaunch {
    hipFunction_t function = nullptr;
    unsigned blocks = 1, threads = 1;
    unsigned rows = 1;          // of so many thread blocks, the second dimension of the grid
    void* arguments = nullptr;  // the argument, which is copied
};
// Asynchronous.
inline hipError_t launch_kernel(const KernelLaunch& kernel, hipStream_t stream)
{
    void* list[] = {kernel.arguments};
    return hipModuleLaunchKernel(kernel.function, kernel.blocks, kernel.rows, 1, kernel.threads, 1,
                                 1, 0, stream, list, nullptr);
}

// A kernel that is launched again and again with the same arguments, which makes its start quicker.
class PreparedKernel {
public:
    virtual ~PreparedKernel() = default;
    // For the launches that follow. Those of before may still run.
    virtual hipError_t set(const KernelLaunch& kernel) = 0;
    // Asynchronous, and only after set() has succeeded.
    virtual hipError_t start(hipStream_t stream) = 0;
};
// For the current device. nullptr: there are none, or they would not be quicker.
std::unique_ptr<PreparedKernel> make_prepared_kernel();

bool can_store_words(int device);
// Stores the words when the stream has done all its work so far. No kernel does that.
hipError_t store_words(hipStream_t stream, std::span<const Word> words);

RdmaFlush rdma_flush_of(int device);
hipError_t flush_rdma_writes();  // of the current device

// See Runtime::cpu_window() and release_cpu_windows().
std::shared_ptr<const CpuWindow> cpu_window_of(std::span<const std::byte> buffer,
                                               const Allocation& memory, std::string& reason);
void forget_cpu_windows();

}  // namespace hier::gpu
