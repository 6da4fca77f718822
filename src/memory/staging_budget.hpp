// SPDX-License-Identifier: BSD-3-Clause
// How much staging memory the process keeps between calls: pageable and pinned memory of the host,
// and device memory. All of it is counted in one place.
#pragma once

#include <cstddef>
#include <mutex>

namespace hier {

class StagingBudget {
public:
    static StagingBudget& instance()
    {
        static StagingBudget budget;
        return budget;
    }

    void set_limit(std::size_t bytes)
    {
        const std::lock_guard lock(mutex_);
        limit_ = bytes;
    }
    // False: that would be too much.
    bool take(std::size_t bytes)
    {
        const std::lock_guard lock(mutex_);
        if (bytes > limit_ || taken_ > limit_ - bytes) return false;
        taken_ += bytes;
        return true;
    }
    void give_back(std::size_t bytes)
    {
        const std::lock_guard lock(mutex_);
        taken_ -= bytes;
    }
    std::size_t taken() const
    {
        const std::lock_guard lock(mutex_);
        return taken_;
    }

private:
    mutable std::mutex mutex_;
    std::size_t limit_ = std::size_t{128} << 20;
    std::size_t taken_ = 0;
};

}  // namespace hier
