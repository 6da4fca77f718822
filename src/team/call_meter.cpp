// SPDX-License-Identifier: BSD-3-Clause
#include "team/call_meter.hpp"

namespace hier {

void CallMeter::begin()
{
    is_timed_ = Statistics::instance().times_calls();
    if (is_timed_) began_ = Clock::now();
}

void CallMeter::take(Route route, const Binding& binding)
{
    route_ = route;
    is_published_ = binding.publish;
    bytes_ = binding.total;
}

void CallMeter::end()
{
    const int by = path();
    tally_.add(HIER_STATISTIC_CALLS + by);
    tally_.add(HIER_STATISTIC_BYTES + by, bytes_);
    if (!is_timed_) return;
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_);
    tally_.add(HIER_STATISTIC_CALL_TIME + by, static_cast<unsigned long long>(time.count()));
}

int CallMeter::path() const
{
    if (!setup_.rail) {
        if (setup_.node->ran_kernel()) return HIER_PATH_KERNELS;
        const bool is_copied = !is_published_ || setup_.node->has_lent();
        return !is_copied ? HIER_PATH_PUBLISHED : HIER_PATH_COPIES;
    }
    switch (route_) {
    case Route::direct:
        return HIER_PATH_DIRECT;
    case Route::ring:
        return HIER_PATH_RING;
    case Route::bundles:
        break;
    }
    return HIER_PATH_BUNDLES;
}

}  // namespace hier
