// SPDX-License-Identifier: BSD-3-Clause
// The executor's clock in the test's hand: hours pass in no time, and no result depends on the
// machine's speed.
//
// Takes effect in a program that has fake_clock.cpp and the linker flag there.
#pragma once

#include <chrono>

namespace hier::test {

extern std::chrono::steady_clock::time_point fake_now;

}  // namespace hier::test
