// SPDX-License-Identifier: BSD-3-Clause
// Every function of the interface goes through these: counts, injected failures, the last error.
#pragma once

#include <hip/hip_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "capture.hpp"
#include "options.hpp"

namespace hip_sim {

struct Totals {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> copies{0};
    std::atomic<std::uint64_t> kernels{0};    // fills and stream writes, which are kernels on AMD
    std::atomic<std::uint64_t> by_graphs{0};  // those of CUDA's graphs
};
extern Totals totals;

// Errors of calls that are made to fail.
inline constexpr hipError_t no_memory = hipErrorOutOfMemory;
inline constexpr hipError_t broken = hipErrorUnknown;

bool is_used();  // has this process used the runtime?
void enter();
bool counts_as_failing();  // counts a call; is it the one that fails?
// Keeps an error as the thread's last one until hipGetLastError, as from ROCm 6 on.
hipError_t leave(hipError_t error);

template <class Body> hipError_t counted(hipError_t injected, Body&& body)
{
    enter();
    if (counts_as_failing()) return leave(injected);
    if (options().devices == 0) return leave(hipErrorNoDevice);
    return leave(body());
}

template <class Body> hipError_t uncounted(Body&& body)
{
    enter();
    return leave(body());
}

// For calls that wait, query, allocate or free.
inline constexpr struct ForbiddenByCapture {
} forbidden_by_capture;

template <class Body> hipError_t counted(ForbiddenByCapture, hipError_t injected, Body&& body)
{
    return counted(injected, [&] {
        return is_forbidden_by_capture() ? hipErrorStreamCaptureUnsupported : body();
    });
}

template <class Body> hipError_t uncounted(ForbiddenByCapture, Body&& body)
{
    return uncounted(
        [&] { return is_forbidden_by_capture() ? hipErrorStreamCaptureUnsupported : body(); });
}

int current_device();    // of the calling thread
int bus_of(int device);  // PCI bus

}  // namespace hip_sim
