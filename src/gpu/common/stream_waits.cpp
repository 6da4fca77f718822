// SPDX-License-Identifier: BSD-3-Clause
// Waits for streams. Lost completions have been seen. So no wait stays silent, and the waits at the
// end of a queue have a bound.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "gpu/common/report.hpp"
#include "gpu/common/stream_queue.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// All queues of the process, and streams that no queue waits for any more.
struct Queues {
    std::mutex mutex;
    std::set<StreamQueue*> all;
    std::vector<hipStream_t> given_up;
};

Queues& queues()
{
    static Queues& made = *new Queues;  // lives as long as the process
    return made;
}

// False: `is_over` has not become true within `bound`. 0: no limit.
template <class F> bool await(std::chrono::milliseconds bound, F is_over)
{
    const auto end = Clock::now() + bound;
    while (!is_over()) {
        if (bound.count() > 0 && Clock::now() > end) return false;
        sched_yield();
    }
    return true;
}

// Waits without an end, if need be. `what`: for the log. False: the limit makes this an error.
template <class F> bool await_reporting(WaitLimit limit, const char* what, F is_over)
{
    constexpr std::chrono::milliseconds between_reports = std::chrono::minutes(1);
    const auto began = Clock::now();
    const auto seconds = [&] {
        return static_cast<long long>(
            std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began).count());
    };
    if (await(limit.bound, is_over)) return true;
    if (limit.fails) return false;
    do {
        report(HIER_LOG_ERROR,
               "%s: %s have not ended in %lld s (coll_hier_timeout): waiting for them goes on",
               platform_name, what, seconds());
    } while (!await(std::max(limit.bound, between_reports), is_over));
    report(HIER_LOG_ERROR, "%s: %s have ended, after %lld s", platform_name, what, seconds());
    return true;
}

bool is_running(hipStream_t stream)
{
    const CapturePass pass;
    const hipError_t error = hipStreamQuery(stream);
    // "Not ready" needs no such call: the runtime does not keep it, or the next call ends it.
    if (error != hipSuccess && error != hipErrorNotReady) (void)hipGetLastError();
    return error == hipErrorNotReady;
}

}  // namespace

bool finish(hipStream_t stream, WaitLimit limit)
{
    if (await_reporting(limit, "trial copies", [&] { return !is_running(stream); })) return true;
    const std::lock_guard lock(queues().mutex);
    queues().given_up.push_back(stream);
    return false;
}

void StreamQueue::enlist()
{
    const std::lock_guard lock(queues().mutex);
    queues().all.insert(this);
}

void StreamQueue::strike_off()
{
    const std::lock_guard lock(queues().mutex);
    queues().all.erase(this);
}

void StreamQueue::leave_streams() const
{
    const std::lock_guard lock(queues().mutex);
    for (const hipStream_t stream : all_streams()) queues().given_up.push_back(stream);
}

bool StreamQueue::finish_all()
{
    const std::lock_guard lock(queues().mutex);
    bool is_over = std::none_of(queues().given_up.begin(), queues().given_up.end(), is_running);
    for (StreamQueue* queue : queues().all) is_over = queue->finish() && is_over;
    return is_over;
}

// A kernel may wait for other ranks, and so for this process too. So its end is awaited without the lock,
// and says nothing of the queue.
bool StreamQueue::finish()
{
    {
        const std::lock_guard lock(mutex_);
        if (!finish_locked()) return false;
    }
    return await(limit_.bound, [&] {
        const std::lock_guard lock(mutex_);
        return kernel_stream_ == nullptr || is_lost() || !is_running(kernel_stream_);
    });
}

bool StreamQueue::are_copies_over() const
{
    return is_lost() || std::none_of(streams_.begin(), streams_.end(), [](const Stream& s) {
               return s.handle != nullptr && is_running(s.handle);
           });
}

bool StreamQueue::finish_locked()
{
    if (is_stuck_) return are_copies_over();
    const bool is_over = await(limit_.bound, [&] { return are_copies_over(); });
    if (!is_over) give_up();
    return is_over;
}

Status StreamQueue::wait(std::uint64_t ticket)
{
    Status status = Status::in_progress;
    char what[64];
    std::snprintf(what, sizeof what, "copies of device %d", device_);
    const bool is_over = await_reporting(limit_, what, [&] {
        status = reached(ticket);
        return status != Status::in_progress;
    });
    if (is_over) return status;
    const std::lock_guard lock(mutex_);
    status = reached_locked(ticket);
    if (status != Status::in_progress) return status;
    give_up();
    return failure_;
}

void StreamQueue::give_up()
{
    is_stuck_ = true;
    failure_ = Status::timed_out;
    report(
        HIER_LOG_ERROR,
        "%s: copies of device %d have not ended in %lld s (coll_hier_timeout): it takes no more, "
        "and the memory they use is not given back",
        platform_name, device_, static_cast<long long>(limit_.bound.count() / 1000));
}

}  // namespace hier::gpu
