// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/stream_marks.hpp"

#include <algorithm>

namespace hier::gpu {

hipError_t StreamMarks::open(int device)
{
    if (!can_store_words(device)) return hipSuccess;
    void* words = nullptr;
    const hipError_t error =
        hipHostMalloc(&words, values_.size() * sizeof *words_, hipHostMallocDefault);
    if (error != hipSuccess) return error;
    words_ = static_cast<std::atomic<std::uint64_t>*>(words);
    for (std::size_t i = 0; i < values_.size(); i++) new (&words_[i]) std::atomic<std::uint64_t>(0);
    return hipSuccess;
}

void StreamMarks::close()
{
    marks_.clear();
    for (auto& spare : spare_events_) spare.clear();
    if (words_ != nullptr) (void)hipHostFree(words_);
}

void StreamMarks::abandon()
{
    for (Mark& mark : marks_) (void)mark.event.release();
    for (auto& spare : spare_events_) {
        for (Event& event : spare) (void)event.release();
    }
}

void StreamMarks::reserve(std::size_t streams)
{
    marks_.reserve(marks_.size() + streams);
    for (auto& spare : spare_events_) spare.reserve(spare.size() + 1);
}

hipError_t StreamMarks::add(std::uint64_t ticket, std::size_t stream, hipStream_t handle,
                            std::vector<Word>& words, bool is_barrier)
{
    Mark mark{ticket, stream, handle, 0, {}, is_barrier};
    hipError_t error = hipSuccess;
    if (words_ != nullptr) {
        mark.value = ++values_[stream];
        words.push_back({&words_[stream], mark.value, 0});
        error = store_words(handle, words);
        words.clear();
    } else {
        error = take_event(mark);
        if (error == hipSuccess) error = hipEventRecord(mark.event.get(), handle);
    }
    if (error == hipSuccess) marks_.push_back(std::move(mark));
    return error;
}

void StreamMarks::add_end(std::uint64_t ticket, std::size_t stream, hipStream_t handle)
{
    marks_.push_back({ticket, stream, handle, 0, {}, false, true});
}

std::uint64_t* StreamMarks::next_word(std::size_t stream, std::uint64_t& value) const
{
    value = values_[stream] + 1;
    return reinterpret_cast<std::uint64_t*>(words_ != nullptr ? &words_[stream] : nullptr);
}

void StreamMarks::add_stored(std::uint64_t ticket, std::size_t stream, hipStream_t handle)
{
    marks_.push_back({ticket, stream, handle, ++values_[stream], {}, false});
}

hipError_t StreamMarks::take_event(Mark& mark)
{
    std::vector<Event>& spare = spare_events_[mark.is_barrier ? 1 : 0];
    if (spare.empty()) {
        hipEvent_t event = nullptr;
        const hipError_t error = hipEventCreateWithFlags(
            &event, mark.is_barrier ? hipEventDefault : hipEventDisableTiming);
        if (error != hipSuccess) return error;
        spare.emplace_back(event);
    }
    mark.event = std::move(spare.back());
    spare.pop_back();
    return hipSuccess;
}

hipError_t StreamMarks::look(const Mark& mark)
{
    // A stream that has failed stores no more words, so the stream is asked now and then.
    constexpr unsigned looks_per_query = 4096;
    if (words_ != nullptr && !mark.is_end) {
        if (words_[mark.stream].load(std::memory_order_acquire) >= mark.value) return hipSuccess;
        if (++looks_ % looks_per_query != 0) return hipErrorNotReady;
    }
    const CapturePass pass;
    return mark.event ? hipEventQuery(mark.event.get()) : hipStreamQuery(mark.handle);
}

hipError_t StreamMarks::look(std::uint64_t ticket)
{
    for (auto mark = marks_.begin(); mark != marks_.end();) {
        if (mark->ticket != ticket) {
            ++mark;
            continue;
        }
        const hipError_t error = look(*mark);
        if (error != hipSuccess) return error;
        if (mark->event) spare_events_[mark->is_barrier ? 1 : 0].push_back(std::move(mark->event));
        mark = marks_.erase(mark);
    }
    return hipSuccess;
}

bool StreamMarks::has(std::uint64_t ticket) const
{
    return std::any_of(marks_.begin(), marks_.end(),
                       [&](const Mark& mark) { return mark.ticket == ticket; });
}

}  // namespace hier::gpu
