// SPDX-License-Identifier: BSD-3-Clause
// Networks that are not tried again for a while.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

#include "net/devices/network_choice.hpp"

namespace hier {

// The devices that this process could not connect. The communicators that come next do not wait for
// them again.
class Quarantine {
public:
    static constexpr std::chrono::minutes duration{10};

    void add(const NetworkChoice& choice)
    {
        const std::lock_guard lock(mutex_);
        if (find(choice) == entries_.end()) entries_.push_back({choice, Clock::now() + duration});
    }
    bool contains(const NetworkChoice& choice)
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(entries_, [](const Entry& e) { return Clock::now() > e.until; });
        return find(choice) != entries_.end();
    }

private:
    using Clock = std::chrono::steady_clock;
    struct Entry {
        NetworkChoice choice;
        Clock::time_point until;
    };

    std::vector<Entry>::iterator find(const NetworkChoice& choice)
    {
        return std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& e) { return e.choice == choice; });
    }

    std::mutex mutex_;
    std::vector<Entry> entries_;
};

}  // namespace hier
