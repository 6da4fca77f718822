// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/retired_rails.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <type_traits>

#include "net/ucx/ucx_rail.hpp"

namespace hier {
namespace {

// A list that needs no memory: rails come from destructors.
struct Retired {
    std::mutex mutex;
    std::atomic<UcxRail*> first{nullptr};
};

constinit Retired all;  // there is nothing to destroy, as little as of the workers' registry
static_assert(std::is_trivially_destructible_v<Retired>);

// Without memory for a goodbye it is asked again.
bool has_left(UcxRail& rail)
{
    try {
        return rail.leave();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

template <class IsOver> void remove_locked(IsOver is_over)
{
    UcxRail* left = nullptr;
    for (UcxRail* rail = all.first; rail != nullptr;) {
        UcxRail* const next = rail->next_retired;
        if (is_over(*rail)) {
            delete rail;
        } else {
            rail->next_retired = left;
            left = rail;
        }
        rail = next;
    }
    all.first = left;
}

}  // namespace

void RetireRail::operator()(UcxRail* rail) const
{
    const std::lock_guard lock(all.mutex);
    rail->next_retired = all.first;
    all.first = rail;
    remove_locked(has_left);
}

void sweep_retired_rails()
{
    if (all.first.load(std::memory_order_relaxed) == nullptr) return;
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (lock.owns_lock()) remove_locked(has_left);
}

void drop_retired_rails()
{
    const std::lock_guard lock(all.mutex);
    remove_locked([](UcxRail&) { return true; });
}

}  // namespace hier
