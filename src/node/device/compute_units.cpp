// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/compute_units.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"

namespace hier {
namespace {

constexpr int max_devices = 64;  // of a process; more of them share what they know

std::atomic<bool> are_watched{false};

}  // namespace

ComputeUnits& ComputeUnits::of(int device)
{
    static std::array<ComputeUnits, max_devices> all;
    return all[static_cast<std::size_t>(device % max_devices)];
}

void ComputeUnits::watch_kernels(bool watches) { are_watched = watches; }

bool ComputeUnits::are_free(User user)
{
    Count& count = without(user);
    std::uint32_t left = count.load(std::memory_order_relaxed);
    while (left > 0)
        if (count.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return false;
    return true;
}

void ComputeUnits::note_late(User user)
{
    const std::uint32_t next = next_.load(std::memory_order_relaxed);
    without(user).store(next, std::memory_order_relaxed);
    next_.store(std::min(2 * next, most), std::memory_order_relaxed);
    if (!is_told_.exchange(true))
        log(HIER_LOG_INFO,
            "a kernel waits, for the application's kernels or for a peer: some calls "
            "go by copy engines instead");
}

void ComputeUnits::note_in_time(User user)
{
    without(user).store(0, std::memory_order_relaxed);
    const std::uint32_t next = next_.load(std::memory_order_relaxed);
    next_.store(std::max(fewest, next - std::max(1U, next / decay)), std::memory_order_relaxed);
}

void ComputeUnits::Kernel::begin(int device, User user, Clock::duration patience)
{
    units_ = are_watched.load(std::memory_order_relaxed) ? &of(device) : nullptr;
    if (units_ == nullptr) return;
    user_ = user;
    patience_ = patience;
    is_late_ = false;
    launched_ = Clock::now();
}

void ComputeUnits::Kernel::look()
{
    if (units_ == nullptr || is_late_ || !is_over_time()) return;
    is_late_ = true;
    units_->note_late(user_);
}

void ComputeUnits::Kernel::end()
{
    if (units_ != nullptr && !is_late_ && !is_over_time()) units_->note_in_time(user_);
}

}  // namespace hier
