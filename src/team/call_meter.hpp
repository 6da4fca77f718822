// SPDX-License-Identifier: BSD-3-Clause
// Counts a team's calls for tools: how many ended well, their bytes and their time, by path. Under
// the team's mutex.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/statistics.hpp"
#include "coll/common/choice.hpp"
#include "team/setup.hpp"

namespace hier {

class CallMeter {
public:
    // `setup` outlives this object.
    explicit CallMeter(const TeamSetup& setup) : setup_(setup) {}

    Tally& tally() { return tally_; }
    // A call begins. The clock is read only while a tool wants times: it costs some 25 ns.
    void begin();
    void take(Route route, const Binding& binding);
    // The call that has begun last has ended well.
    void end();

private:
    using Clock = std::chrono::steady_clock;
    int path() const;

    const TeamSetup& setup_;
    Tally tally_;
    Route route_ = Route::direct;
    bool is_published_ = false;
    bool is_timed_ = false;
    std::size_t bytes_ = 0;
    Clock::time_point began_;
};

}  // namespace hier
