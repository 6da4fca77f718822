// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/stream_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "gpu/common/report.hpp"
#include "hier/hier.h"

namespace hier::gpu {

StreamQueue::StreamQueue(int device, WaitLimit limit) : device_(device), limit_(limit)
{
    const DeviceScope scope(device);
    hipError_t error = scope.error();
    context_ = current_context();
    if (error == hipSuccess) error = open(0);
    if (error == hipSuccess) error = platform_try(streams_[0].handle, limit, tried_with_);
    if (error == hipSuccess) error = marks_.open(device);
    if (error == hipSuccess) {
        prepared_ = make_prepared_copy();
        enlist();
        return;
    }
    const hipStream_t first = streams_.empty() ? nullptr : streams_[0].handle;
    if (first != nullptr && hipStreamQuery(first) == hipErrorNotReady) {
        (void)tried_with_.release();
    } else if (first != nullptr) {
        (void)hipStreamDestroy(first);
    }
    (void)failed_with(error, "no streams for copies");
    throw std::runtime_error(hipGetErrorString(error));
}

StreamQueue::~StreamQueue()
{
    strike_off();
    kernels_.stop();
    const bool is_over = finish();
    if (is_lost()) {
        abandon();
        return;
    }
    const DeviceScope scope(device_);
    if (!is_over) {
        // To destroy a stream or an event, or to give memory back, would wait for the copies.
        leave_streams();
        abandon();
        return;
    }
    for (const hipStream_t stream : all_streams()) (void)hipStreamDestroy(stream);
    prepared_.reset();
    kernels_.unload();
    tried_with_.reset();
    marks_.close();
}

// Destroys nothing.
void StreamQueue::abandon()
{
    marks_.abandon();
    (void)prepared_.release();
    kernels_.abandon();
    (void)tried_with_.release();
}

std::vector<hipStream_t> StreamQueue::all_streams() const
{
    std::vector<hipStream_t> all{kernel_stream_};
    for (const Stream& s : streams_) all.push_back(s.handle);
    std::erase(all, nullptr);
    return all;
}

// The highest priority, so that copies do not wait behind the application's streams.
hipError_t StreamQueue::open(hipStream_t& stream)
{
    if (stream != nullptr) return hipSuccess;
    int least = 0, greatest = 0;
    const hipError_t error = hipDeviceGetStreamPriorityRange(&least, &greatest);
    return error != hipSuccess
               ? error
               : hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, greatest);
}

hipError_t StreamQueue::open(std::size_t stream)
{
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    return open(streams_[stream].handle);
}

// An earlier call that ran out of memory may have left copies here.
void StreamQueue::forget()
{
    for (Stream& s : streams_) {
        s.copies.clear();
        s.words.clear();
    }
}

// Some copies of this call may have been started. They must end before the caller gives up the
// buffers.
Status StreamQueue::failed_start(const char* what, hipError_t error)
{
    const Status status = failed_with(error, what);
    forget();
    return finish_locked() ? status : failure_;
}

// Can the queue start anything?
Status StreamQueue::check(const DeviceScope& scope)
{
    if (failed(failure_)) return failure_;
    if (scope.error() != hipSuccess) return failed_start("switching to the device", scope.error());
    if (current_context() == context_) return Status::ok;
    report(HIER_LOG_ERROR,
           "%s: device %d has been reset, and nothing of what was set up there is left",
           platform_name, device_);
    return failure_ = Status::transport_error;
}

Status StreamQueue::start(std::span<const Copy> copies, std::span<const Word> words,
                          std::uint64_t& ticket)
{
    const std::lock_guard lock(mutex_);
    const DeviceScope scope(device_);
    const Status status = check(scope);
    if (failed(status)) return status;
    forget();
    for (const Copy& c : copies) {
        const std::size_t stream = std::min(stream_of(c.lane), StreamMarks::max_streams - 1);
        const hipError_t error = open(stream);
        if (error != hipSuccess) return failed_start("no stream for copies", error);
        streams_[stream].copies.push_back(c);
    }
    for (const Word& w : words)
        streams_[std::min(stream_of(w.lane), StreamMarks::max_streams - 1)].words.push_back(w);
    // Allocates before the first copy starts, because every copy that starts needs a mark.
    marks_.reserve(streams_.size());
    for (Stream& s : streams_) s.words.reserve(s.words.size() + 1);
    ticket = ++last_ticket_;
    // Copies to peers go first, and run while the copies inside the device are issued. A prepared
    // copy goes ahead of several copies to peers: it is issued quickly, and runs while they are
    // issued.
    const bool is_ahead = copies.size() > 2 && start_prepared();
    for (std::size_t i = streams_.size(); i-- > 0;) {
        Stream& s = streams_[i];
        // A call without copies is a barrier: one mark, in stream 0.
        if (s.copies.empty() && !(copies.empty() && i == 0)) continue;
        const bool is_started = i == stream_of(Copy::inside) && (is_ahead || start_prepared());
        const bool is_alone = !s.copies.empty() && s.copies[0].is_alone && s.words.empty();
        hipError_t error = is_started ? hipSuccess : copy_all(s.handle, s.copies);
        s.copies.clear();
        if (error != hipSuccess) return failed_start("starting copies", error);
        if (is_alone) {
            marks_.add_end(ticket, i, s.handle);
            continue;
        }
        error = marks_.add(ticket, i, s.handle, s.words, copies.empty());
        if (error != hipSuccess) return failed_start("marking the end of copies", error);
    }
    return Status::ok;
}

// A larger copy takes so long that the time to issue it does not matter.
bool StreamQueue::start_prepared()
{
    constexpr std::size_t max_bytes = 4 << 20;
    const std::size_t stream = stream_of(Copy::inside);
    if (prepared_ == nullptr || stream >= streams_.size()) return false;
    const Stream& s = streams_[stream];
    return s.copies.size() == 1 && s.copies[0].recurs && s.copies[0].bytes <= max_bytes &&
           prepared_->start(s.handle, s.copies[0]);
}

bool StreamQueue::has_kernels()
{
    const std::lock_guard lock(mutex_);
    const DeviceScope scope(device_);
    return !failed(check(scope)) && kernels_.load(device_);
}

hipError_t StreamQueue::launch(Exchange& arguments)
{
    const hipError_t error = open(kernel_stream_);
    if (error != hipSuccess) return error;
    marks_.reserve(1);
    arguments.done = marks_.next_word(StreamMarks::of_kernel, arguments.done_value);
    const hipError_t launched = kernels_.launch(kernel_stream_, arguments);
    if (launched == hipSuccess)
        mark_kernel(StreamMarks::of_kernel, kernel_stream_, arguments.done != nullptr);
    return launched;
}

// A kernel runs. Whoever launched it must learn of its end, to stop it if need be.
void StreamQueue::mark_kernel(std::size_t stream, hipStream_t handle, bool stores_its_mark)
{
    std::vector<Word> none;
    if (stores_its_mark) return marks_.add_stored(last_ticket_, stream, handle);
    if (marks_.add(last_ticket_, stream, handle, none, false) == hipSuccess) return;
    (void)hipGetLastError();
    marks_.add_end(last_ticket_, stream, handle);
}

Status StreamQueue::fan_out(FanOut& arguments, std::span<const Word> words, std::uint64_t& ticket)
{
    const std::lock_guard lock(mutex_);
    const DeviceScope scope(device_);
    const Status status = check(scope);
    if (failed(status)) return status;
    const std::size_t stream = std::min(stream_of(1), StreamMarks::max_streams - 1);
    hipError_t error = open(stream);
    if (error != hipSuccess) return failed_start("no stream for copies", error);
    marks_.reserve(1);
    arguments.signals = 0;
    for (const Word& word : words)
        arguments.signal[arguments.signals++] = {reinterpret_cast<std::uint64_t*>(word.at),
                                                 word.value};
    arguments.done = marks_.next_word(stream, arguments.done_value);
    error = kernels_.launch(streams_[stream].handle, arguments);
    if (error != hipSuccess) return failed_start("starting a kernel", error);
    ticket = ++last_ticket_;
    mark_kernel(stream, streams_[stream].handle, arguments.done != nullptr);
    return Status::ok;
}

// Copies that run do not delay the kernel, which has a stream of its own. Nobody waits for the kernel
// here, even after an error, because it waits for those of other ranks.
Status StreamQueue::exchange(Exchange& arguments, std::uint64_t& ticket)
{
    const std::lock_guard lock(mutex_);
    const DeviceScope scope(device_);
    const Status status = check(scope);
    if (failed(status)) return status;
    // Perhaps nobody asked for the end of the last kernel.
    hipError_t error = marks_.look(kernel_ticket_);
    if (error == hipErrorNotReady) return Status::in_progress;
    ticket = kernel_ticket_ = ++last_ticket_;
    if (error == hipSuccess) error = launch(arguments);
    return error == hipSuccess ? Status::ok : failed_with(error, "starting a kernel");
}

Status StreamQueue::reached(std::uint64_t ticket)
{
    const std::lock_guard lock(mutex_);
    return reached_locked(ticket);
}

Status StreamQueue::reached_locked(std::uint64_t ticket)
{
    if (failed(failure_)) return marks_.has(ticket) ? failure_ : Status::ok;
    const hipError_t error = marks_.look(ticket);
    if (error == hipErrorNotReady) return Status::in_progress;
    if (error != hipSuccess) failure_ = failed_with(error, "copies");
    return failure_;
}

}  // namespace hier::gpu
