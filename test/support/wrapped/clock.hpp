// SPDX-License-Identifier: BSD-3-Clause
// std::chrono::steady_clock, as the objects of the program read it. It is the real one until the
// test's main chooses another.
#pragma once

#include <chrono>

namespace hier::test {

enum class ClockMode {
    real,
    fast,  // ten times as fast: bounds of tens of seconds are met within a test
    fake   // stands at fake_now: hours pass in no time, and the machine's speed does not matter
};

// The tests' own bounds (await, run_ranks) use the system's clock in every mode.
void use_clock(ClockMode mode);

extern std::chrono::steady_clock::time_point fake_now;

}  // namespace hier::test
