// SPDX-License-Identifier: BSD-3-Clause
// A thread that moves the running calls while the application computes.
//
//     asleep --- wake(): a call has started ---> awake: moves calls
//       ^                                          |
//       '---- for some time nothing has moved -----'   looks again now and then, as long as a call runs
//
// The application's own threads move calls too, whenever they are inside MPI. But two threads at the same calls are
// slower than one. So the application leaves the calls to this thread while it moves them, and this thread stands back
// while the application moves calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/cache.hpp"

namespace hier {

class ProgressThread {
public:
    static ProgressThread& instance();

    // Once. If there can be no thread, the log says so.
    void start();
    // Without a thread nothing happens.
    void stop();
    void wake();
    // The same, behind ProgressEngine::post.
    void wake_for_post();
    // Shall the thread launch a call that starts now, and not the caller, who has to compute? Yes if it is awake, or
    // if the call is so long that the time to wake up does not matter. It may have fallen asleep since: call wake().
    bool should_launch(bool is_long) const
    {
        return is_awake_.load(std::memory_order_relaxed) ||
               (is_long && has_started_ && !shares_core_.load(std::memory_order_relaxed));
    }
    // There is no core to spare: do not keep one busy in order to be quick.
    void share_core() { shares_core_.store(true, std::memory_order_relaxed); }
    // A thread of the application moves calls.
    void stand_back()
    {
        if (!has_started_) return;
        const unsigned passes = passes_of_others_.load(std::memory_order_relaxed);
        passes_of_others_.store(passes + 1, std::memory_order_relaxed);
    }
    // Does the thread move the calls? Asked by a thread of the application before each of its own passes. No, if the
    // thread has made no pass for some time: then it has no core, or is busy with one call.
    bool moves_calls() const;

private:
    static constexpr unsigned nobody = 0;

    void run();
    void start_once();
    void move_calls(bool is_woken);
    void show_pass(bool moves);
    bool sleep();

    // First, and in a cache line of their own: every call of the application looks at them.
    alignas(cache_line) std::atomic<unsigned> passes_of_others_{0};
    std::atomic<bool> is_wanted_{false};  // a call has started
    std::atomic<bool> is_awake_{false};
    std::atomic<bool> shares_core_{false};
    bool has_started_ = false;

    // Written by the thread alone. The application looks at the first.
    alignas(cache_line) std::atomic<unsigned> pass_{nobody};  // in which it moves calls
    unsigned count_ = 0;                                      // of these passes
    unsigned seen_ = 0;                                       // of passes_of_others_
    bool has_seen_posts_ = false;                             // in its last pass
    std::thread thread_;
    std::mutex mutex_;  // to wait with
    std::condition_variable changed_;
    std::atomic<bool> is_stopping_{false};
};

}  // namespace hier
