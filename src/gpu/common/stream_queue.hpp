// SPDX-License-Identifier: BSD-3-Clause
// A Queue that is made of streams. A stream takes the copies of one lane or of several.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/common/kernels.hpp"
#include "gpu/common/platform.hpp"
#include "gpu/common/stream_marks.hpp"

namespace hier::gpu {

class StreamQueue final : public Queue {
public:
    // Throws std::runtime_error if there are no streams.
    StreamQueue(int device, WaitLimit limit);
    ~StreamQueue() override;
    StreamQueue(const StreamQueue&) = delete;
    StreamQueue& operator=(const StreamQueue&) = delete;
    // Waits for all queues, for each one up to its bound. A queue that has exceeded its bound
    // before is not waited for. False: some copy still runs.
    static bool finish_all();

    Status start(std::span<const Copy> copies, std::span<const Word> words,
                 std::uint64_t& ticket) override;
    Status reached(std::uint64_t ticket) override;
    Status wait(std::uint64_t ticket) override;
    bool stores_words() const override { return marks_.are_words(); }
    bool has_kernels() override;
    Status exchange(Exchange& arguments, std::uint64_t& ticket) override;
    Status fan_out(FanOut& arguments, std::span<const Word> words, std::uint64_t& ticket) override;
    void stop_exchange() override { kernels_.stop(); }

private:
    struct Stream {
        hipStream_t handle = nullptr;
        std::vector<Copy> copies;  // of the start() that is running
        std::vector<Word> words;
    };

    Status check(const DeviceScope& scope);
    hipError_t open(std::size_t stream);
    static hipError_t open(hipStream_t& stream);
    hipError_t launch(Exchange& arguments);
    void mark_kernel(std::size_t stream, hipStream_t handle, bool stores_its_mark);
    std::vector<hipStream_t> all_streams() const;
    void forget();
    bool start_prepared();
    Status failed_start(const char* what, hipError_t error);
    Status reached_locked(std::uint64_t ticket);
    void abandon();
    // Has the application reset the device?
    bool is_lost() const { return context_of(device_) != context_; }
    // In stream_waits.cpp:
    bool are_copies_over() const;
    bool finish();
    bool finish_locked();
    void give_up();
    void enlist();
    void strike_off();
    void leave_streams() const;

    int device_;
    WaitLimit limit_;
    std::uint64_t context_ = 0;
    TrialMemory tried_with_{nullptr, nullptr};  // of platform_try()
    std::unique_ptr<PreparedCopy> prepared_;    // for copies inside the device
    Kernels kernels_;
    bool is_stuck_ = false;  // a wait for a copy has failed
    std::mutex mutex_;
    std::vector<Stream> streams_;
    hipStream_t kernel_stream_ = nullptr;
    std::uint64_t kernel_ticket_ = 0;  // of the last kernel
    StreamMarks marks_;
    std::uint64_t last_ticket_ = 0;
    Status failure_ = Status::ok;  // of any copy that has been started; nobody knows which
};

}  // namespace hier::gpu
