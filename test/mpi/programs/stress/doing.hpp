// SPDX-License-Identifier: BSD-3-Clause
// What each thread does now, for the lines of a hang.
#pragma once

#include <atomic>

namespace hier_test::stress {

inline constexpr int max_threads = 16;

// What one thread does.
class Doing {
public:
    explicit Doing(int thread);
    [[gnu::format(printf, 2, 3)]] void now(const char* format, ...);
    // A call has ended.
    static void moved();

private:
    char* line_;
    int thread_;
};

// Ends the process if no call ends for so many seconds: a line for each thread says what it does.
// The session's own limit of time prints the same lines.
class HangWatch {
public:
    HangWatch(int rank, long seconds);
    // Returns when `running` is 0.
    void watch(const std::atomic<int>& running) const;

private:
    long seconds_;
};

}  // namespace hier_test::stress
