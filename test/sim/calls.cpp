// SPDX-License-Identifier: BSD-3-Clause
#include "calls.hpp"

#include <pthread.h>

#include <utility>

#include "bar.hpp"
#include "hip_sim.h"

namespace hip_sim {

Totals totals;

namespace {

std::atomic<bool> used{false};
std::atomic<bool> forked_after_use{false};
thread_local hipError_t last_error = hipSuccess;

std::atomic<std::uint64_t>& failing_call()
{
    static std::atomic<std::uint64_t> call{options().failing_call};
    return call;
}

// A child of fork() has no streams, because they are threads.
void forbid_use_in_child()
{
    if (!used.exchange(true)) pthread_atfork(nullptr, nullptr, [] { forked_after_use = true; });
}

struct Name {
    hipError_t error;
    const char* text;
};
constexpr Name names[] = {
    {hipSuccess, "hipSuccess"},
    {hipErrorInvalidValue, "hipErrorInvalidValue"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer"},
    {hipErrorNoDevice, "hipErrorNoDevice"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice"},
    {hipErrorInvalidContext, "hipErrorInvalidContext"},
    {hipErrorMapFailed, "hipErrorMapFailed"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle"},
    {hipErrorNotReady, "hipErrorNotReady"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated"},
};

}  // namespace

bool is_used() { return used && !forked_after_use; }

void enter()
{
    refresh_bar();
    if (!used) forbid_use_in_child();
    if (forked_after_use) give_up("used in the child of a fork, after the parent had used it");
}

bool counts_as_failing() { return ++totals.calls == failing_call(); }

hipError_t leave(hipError_t error)
{
    if (error != hipSuccess && error != hipErrorNotReady) last_error = error;
    return error;
}

}  // namespace hip_sim

using namespace hip_sim;

hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }

hipError_t hipPeekAtLastError() { return last_error; }

const char* hipGetErrorName(hipError_t error)
{
    for (const Name& name : names) {
        if (name.error == error) return name.text;
    }
    return "hipErrorUnknown";
}

// HIP 5.2 has no other text.
const char* hipGetErrorString(hipError_t error) { return hipGetErrorName(error); }

std::uint64_t hip_sim_calls() { return totals.calls; }

void hip_sim_fail_at(std::uint64_t call) { failing_call() = call; }
