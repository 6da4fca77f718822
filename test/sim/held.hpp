// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace hip_sim {

// Has a lock that a handler of faults may take, too. So its holder touches no page that may fault.
class Held {
public:
    explicit Held(std::atomic_flag& lock) : lock_(lock)
    {
        while (lock_.test_and_set(std::memory_order_acquire)) {
        }
    }
    ~Held() { lock_.clear(std::memory_order_release); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    std::atomic_flag& lock_;
};

}  // namespace hip_sim
