// SPDX-License-Identifier: BSD-3-Clause
#include "calls.hpp"
#include "stream.hpp"

using namespace hip_sim;

namespace {

constexpr int min_priority = 1;
constexpr int greatest_priority = -1;

hipError_t create(hipStream_t* stream, unsigned flags)
{
    if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
        give_up("streams with flags 0x%x are not simulated", flags);
    return create_stream(stream, flags == hipStreamDefault);
}

}  // namespace

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags)
{
    return counted(no_memory, [&] { return create(stream, flags); });
}

hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority)
{
    return counted(no_memory, [&] {
        if (priority < greatest_priority || priority > min_priority) return hipErrorInvalidValue;
        return create(stream, flags);
    });
}

hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    return counted(broken, [&] {
        if (least != nullptr) *least = min_priority;
        if (greatest != nullptr) *greatest = greatest_priority;
        return hipSuccess;
    });
}

// Waits until the stream has done everything.
hipError_t hipStreamDestroy(hipStream_t stream)
{
    return uncounted([&] { return destroy_stream(stream); });
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    return counted(forbidden_by_capture, broken, [&] {
        return is_stream(stream) ? wait_for(outstanding(stream)) : hipErrorInvalidHandle;
    });
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    return uncounted(forbidden_by_capture, [&] {
        return is_stream(stream) ? query(outstanding(stream)) : hipErrorInvalidHandle;
    });
}

hipError_t hipDeviceSynchronize()
{
    return counted(forbidden_by_capture, broken,
                   [&] { return wait_for(outstanding_on(current_device())); });
}
