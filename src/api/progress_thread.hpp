// SPDX-License-Identifier: BSD-3-Clause
// A thread that moves the running calls while the application computes.
//
//     asleep --- wake(): a call has started ---> moves calls, as long as any runs ---> asleep
//
// The application's own threads move calls too, whenever they are inside MPI. Then this thread stands back: two threads
// at the same calls are slower than one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace hier {

class ProgressThread {
public:
    static ProgressThread& instance();

    // Once. If there can be no thread, the log says so.
    void start();
    // Without a thread nothing happens.
    void stop();
    void wake();
    // A thread of the application moves calls.
    void stand_back()
    {
        const unsigned passes = passes_of_others_.load(std::memory_order_relaxed);
        passes_of_others_.store(passes + 1, std::memory_order_relaxed);
    }

private:
    void run();
    void move_calls() const;

    std::thread thread_;
    std::mutex mutex_;  // of the next three
    std::condition_variable changed_;
    bool is_wanted_ = false;
    std::atomic<bool> is_stopping_{false};
    std::atomic<unsigned> passes_of_others_{0};
};

}  // namespace hier
