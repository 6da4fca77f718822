// SPDX-License-Identifier: BSD-3-Clause
// What the process has counted for tools (hier_statistic).
//
// What each call counts goes into the Tally of its team. An atomic increment takes some 5 ns, and
// a plain store takes almost none. A call of 8 bytes takes 1.4 us. Rare events go to Statistics.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

#include "hier/statistics.h"

namespace hier {

// Only one thread at a time counts here, and any thread reads.
class Tally {
public:
    Tally();
    ~Tally();  // what it has counted stays
    Tally(const Tally&) = delete;
    Tally& operator=(const Tally&) = delete;

    void add(int statistic, unsigned long long n = 1)
    {
        std::atomic<unsigned long long>& value = values_[static_cast<std::size_t>(statistic)];
        value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    unsigned long long get(int statistic) const
    {
        return values_[static_cast<std::size_t>(statistic)].load(std::memory_order_relaxed);
    }

private:
    std::array<std::atomic<unsigned long long>, HIER_STATISTICS> values_{};
};

// For any thread.
class Statistics {
public:
    static Statistics& instance();

    void add(int statistic, unsigned long long n = 1)
    {
        values_[static_cast<std::size_t>(statistic)].fetch_add(n, std::memory_order_relaxed);
    }
    // Of the process, with all tallies that there are and ever were.
    unsigned long long sum(int statistic);

    // Does anybody want the times of calls?
    bool times_calls() const { return wishes_.load(std::memory_order_relaxed) > 0; }
    void want_call_times(bool is_wanted)
    {
        wishes_.fetch_add(is_wanted ? 1 : -1, std::memory_order_relaxed);
    }

private:
    friend class Tally;
    void take_in(Tally& tally);
    void let_go(Tally& tally);

    std::array<std::atomic<unsigned long long>, HIER_STATISTICS> values_{};
    std::atomic<int> wishes_{0};
    std::mutex mutex_;  // of tallies_
    std::vector<const Tally*> tallies_;
};

// Counts the nanoseconds from here to the end of the scope.
class TimeCount {
public:
    explicit TimeCount(int statistic) : statistic_(statistic) {}
    TimeCount(const TimeCount&) = delete;
    TimeCount& operator=(const TimeCount&) = delete;
    ~TimeCount()
    {
        const std::chrono::nanoseconds time = Clock::now() - began_;
        Statistics::instance().add(statistic_, static_cast<unsigned long long>(time.count()));
    }

private:
    using Clock = std::chrono::steady_clock;
    const int statistic_;
    const Clock::time_point began_ = Clock::now();
};

}  // namespace hier
