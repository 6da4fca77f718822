// SPDX-License-Identifier: BSD-3-Clause
#include <mutex>
#include <set>

#include "calls.hpp"
#include "stream.hpp"

struct ihipEvent_t {
    int device;
    hip_sim::MarkRef recorded;  // null: not recorded yet
};

namespace hip_sim {

namespace {

struct Events {
    std::mutex mutex;
    std::set<hipEvent_t> all;
};

Events& events()
{
    static Events& made = *new Events;
    return made;
}

// Sets `marks` to what the event stands for. False: there is no such event.
bool marks_of(hipEvent_t event, std::vector<MarkRef>& marks)
{
    Events& e = events();
    const std::lock_guard lock(e.mutex);
    if (!e.all.contains(event)) return false;
    if (event->recorded) marks.push_back(event->recorded);
    return true;
}

hipError_t create(hipEvent_t* event, unsigned flags)
{
    constexpr unsigned known = hipEventBlockingSync | hipEventDisableTiming |
                               hipEventReleaseToDevice | hipEventReleaseToSystem;
    if ((flags & ~known) != 0) give_up("events with flags 0x%x are not simulated", flags);
    if (event == nullptr) return hipErrorInvalidValue;
    Events& e = events();
    const std::lock_guard lock(e.mutex);
    *event = new ihipEvent_t{current_device(), nullptr};
    e.all.insert(*event);
    return hipSuccess;
}

hipError_t destroy(hipEvent_t event)
{
    Events& e = events();
    const std::lock_guard lock(e.mutex);
    if (e.all.erase(event) == 0) return hipErrorInvalidHandle;
    delete event;
    return hipSuccess;
}

hipError_t record(hipEvent_t event, hipStream_t stream)
{
    Events& e = events();
    const std::lock_guard lock(e.mutex);
    if (!e.all.contains(event) || !is_stream(stream)) return hipErrorInvalidHandle;
    if (event->device != device_of(stream)) return hipErrorInvalidHandle;
    return enqueue(stream, {}, event->recorded) ? hipSuccess : hipErrorInvalidHandle;
}

hipError_t let_wait(hipStream_t stream, hipEvent_t event, unsigned flags)
{
    if (flags != 0) give_up("hipStreamWaitEvent with flags 0x%x is not simulated", flags);
    Operation operation;
    if (!marks_of(event, operation.after)) return hipErrorInvalidHandle;
    MarkRef mark;
    return enqueue(stream, std::move(operation), mark) ? hipSuccess : hipErrorInvalidHandle;
}

}  // namespace

std::uint64_t live_events()
{
    Events& e = events();
    const std::lock_guard lock(e.mutex);
    return e.all.size();
}

}  // namespace hip_sim

using namespace hip_sim;

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags)
{
    return counted(no_memory, [&] { return create(event, flags); });
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    return uncounted([&] { return destroy(event); });
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    return counted(broken, [&] { return record(event, stream); });
}

hipError_t hipEventQuery(hipEvent_t event)
{
    return uncounted(forbidden_by_capture, [&] {
        std::vector<MarkRef> marks;
        return marks_of(event, marks) ? query(marks) : hipErrorInvalidHandle;
    });
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    return counted(forbidden_by_capture, broken, [&] {
        std::vector<MarkRef> marks;
        return marks_of(event, marks) ? wait_for(marks) : hipErrorInvalidHandle;
    });
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
    return counted(broken, [&] { return let_wait(stream, event, flags); });
}
