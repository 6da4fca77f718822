// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "calls.hpp"

struct ihipStream_t {
    int device = 0;
    bool is_null = false;
    bool is_blocking = true;  // this stream and the null stream wait for each other
    std::deque<std::pair<hip_sim::Operation, hip_sim::MarkRef>> queue;
    hip_sim::MarkRef last;
    bool is_ending = false;
    std::condition_variable work;
    hip_sim::Random random;
    std::thread thread;
};

namespace hip_sim {

namespace {

// One lock for all streams and marks.
struct Engines {
    std::mutex mutex;
    std::condition_variable progress;
    std::set<hipStream_t> streams;
    std::map<int, hipStream_t> null_streams;
    unsigned created = 0;
};

Engines& engines()
{
    static Engines& made = *new Engines;
    return made;
}

void run(ihipStream_t& stream)
{
    prctl(PR_SET_TIMERSLACK, 1);
    Engines& e = engines();
    bool has_failed = false;
    std::unique_lock lock(e.mutex);
    for (;;) {
        stream.work.wait(lock, [&] { return stream.is_ending || !stream.queue.empty(); });
        if (stream.queue.empty()) return;
        auto [operation, mark] = std::move(stream.queue.front());
        stream.queue.pop_front();
        for (const MarkRef& earlier : operation.after) {
            e.progress.wait(lock, [&] { return earlier->done; });
            has_failed = has_failed || earlier->failed;
        }
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(options().least_delay_us));
        pause_for_a_while(stream.random);
        if (operation.work && (!has_failed || operation.is_cleanup))
            has_failed = !operation.work(stream.random) || has_failed;
        lock.lock();
        mark->failed = has_failed;
        mark->done = true;
        e.progress.notify_all();
    }
}

// The caller holds the lock.
hipStream_t start(Engines& e, int device, bool is_null, bool is_blocking)
{
    auto stream = std::make_unique<ihipStream_t>();
    stream->device = device;
    stream->is_null = is_null;
    stream->is_blocking = is_blocking;
    stream->random.seed(options().seed * 1009 + ++e.created);

    // The application's threads get all signals.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stream->thread = std::thread(run, std::ref(*stream));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return stream.release();
}

// nullptr: there is no such stream. The caller holds the lock.
hipStream_t at(Engines& e, hipStream_t stream)
{
    if (stream == hipStreamPerThread) give_up("hipStreamPerThread is not simulated");
    if (stream != nullptr) return e.streams.contains(stream) ? stream : nullptr;
    hipStream_t& of_device = e.null_streams[current_device()];
    if (of_device == nullptr) of_device = start(e, current_device(), true, true);
    return of_device;
}

// Returns the operations of other streams that the next operation has to follow. The caller holds
// the lock.
std::vector<MarkRef> implied(Engines& e, const ihipStream_t& stream)
{
    std::vector<MarkRef> marks;
    const auto add = [&](const ihipStream_t& other) {
        if (other.last && !other.last->done) marks.push_back(other.last);
    };
    if (stream.is_null) {
        for (const auto* other : e.streams) {
            if (other->device == stream.device && other->is_blocking) add(*other);
        }
    } else if (stream.is_blocking && e.null_streams.contains(stream.device)) {
        add(*e.null_streams[stream.device]);
    }
    return marks;
}

}  // namespace

hipError_t create_stream(hipStream_t* stream, bool is_blocking)
{
    if (stream == nullptr) return hipErrorInvalidValue;
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    *stream = start(e, current_device(), false, is_blocking);
    e.streams.insert(*stream);
    return hipSuccess;
}

hipError_t destroy_stream(hipStream_t stream)
{
    Engines& e = engines();
    {
        const std::lock_guard lock(e.mutex);
        if (stream == nullptr || e.streams.erase(stream) == 0) return hipErrorInvalidHandle;
        stream->is_ending = true;
        stream->work.notify_one();
    }
    stream->thread.join();
    delete stream;
    return hipSuccess;
}

bool is_stream(hipStream_t stream)
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    return at(e, stream) != nullptr;
}

int device_of(hipStream_t stream)
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    return at(e, stream)->device;
}

bool enqueue(hipStream_t stream, Operation operation, MarkRef& mark)
{
    if (is_captured(stream)) give_up("what a captured stream is given is not simulated");
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    ihipStream_t* to = at(e, stream);
    if (to == nullptr) return false;
    std::ranges::copy(implied(e, *to), std::back_inserter(operation.after));
    mark = std::make_shared<Mark>();
    to->last = mark;
    to->queue.emplace_back(std::move(operation), mark);
    to->work.notify_one();
    return true;
}

std::vector<MarkRef> outstanding(hipStream_t stream)
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    const ihipStream_t* of = at(e, stream);
    std::vector<MarkRef> marks;
    if (of->is_null) marks = implied(e, *of);
    if (of->last) marks.push_back(of->last);
    return marks;
}

std::vector<MarkRef> outstanding_on(int device)
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    std::vector<MarkRef> marks;
    const auto add = [&](const ihipStream_t& stream) {
        if (stream.last && (device < 0 || stream.device == device)) marks.push_back(stream.last);
    };
    for (const auto* stream : e.streams) add(*stream);
    for (const auto& [of_device, stream] : e.null_streams) {
        if (stream != nullptr) add(*stream);
    }
    return marks;
}

hipError_t wait_for(const std::vector<MarkRef>& marks)
{
    Engines& e = engines();
    std::unique_lock lock(e.mutex);
    bool has_failed = false;
    for (const MarkRef& mark : marks) {
        e.progress.wait(lock, [&] { return mark->done; });
        has_failed = has_failed || mark->failed;
    }
    return has_failed ? hipErrorUnknown : hipSuccess;
}

hipError_t query(const std::vector<MarkRef>& marks)
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    if (!std::ranges::all_of(marks, [](const MarkRef& mark) { return mark->done; }))
        return hipErrorNotReady;
    const bool has_failed =
        std::ranges::any_of(marks, [](const auto& mark) { return mark->failed; });
    return has_failed ? hipErrorUnknown : hipSuccess;
}

void pause_for_a_while(Random& random)
{
    const unsigned max_us = options().delay_us;
    if (max_us != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % (max_us + 1)));
}

std::uint64_t live_streams()
{
    Engines& e = engines();
    const std::lock_guard lock(e.mutex);
    return e.streams.size();
}

}  // namespace hip_sim
