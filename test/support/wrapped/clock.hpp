// SPDX-License-Identifier: BSD-3-Clause
// std::chrono::steady_clock as the objects of the program read it. It is the real clock until the
// test's main chooses another one.
#pragma once

#include <chrono>

namespace hier::test {

enum class ClockMode {
    real,
    fast,  // ten times as fast, so that bounds of tens of seconds fit into a test
    fake   // always says fake_now, so the speed of the machine does not matter
};

// The tests' own bounds (await, run_ranks) use the system's clock in every mode.
void use_clock(ClockMode mode);

extern std::chrono::steady_clock::time_point fake_now;
extern unsigned long fake_reads;  // how often somebody has read the fake clock

}  // namespace hier::test
