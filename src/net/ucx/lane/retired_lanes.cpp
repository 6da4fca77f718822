// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/retired_lanes.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <type_traits>

#include "net/ucx/lane/ucx_lane.hpp"

namespace hier {
namespace {

// A list that needs no memory: lanes come here from destructors.
struct Retired {
    std::mutex mutex;
    std::atomic<UcxLane*> first{nullptr};
};

constinit Retired all;  // never destroyed, as the registry of the workers
static_assert(std::is_trivially_destructible_v<Retired>);

// A lane without memory for a goodbye is asked again later.
bool has_left(UcxLane& lane)
{
    try {
        return lane.leave();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

template <class IsOver> void remove_locked(IsOver is_over)
{
    UcxLane* left = nullptr;
    for (UcxLane* lane = all.first; lane != nullptr;) {
        UcxLane* const next = lane->next_retired;
        if (is_over(*lane)) {
            delete lane;
        } else {
            lane->next_retired = left;
            left = lane;
        }
        lane = next;
    }
    all.first = left;
}

}  // namespace

void RetireLane::operator()(UcxLane* lane) const
{
    const std::lock_guard lock(all.mutex);
    lane->next_retired = all.first;
    all.first = lane;
    remove_locked(has_left);
}

void sweep_retired_lanes()
{
    if (all.first.load(std::memory_order_relaxed) == nullptr) return;
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (lock.owns_lock()) remove_locked(has_left);
}

void drop_retired_lanes()
{
    const std::lock_guard lock(all.mutex);
    remove_locked([](UcxLane&) { return true; });
}

}  // namespace hier
