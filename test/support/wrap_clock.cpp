// SPDX-License-Identifier: BSD-3-Clause
// Needs -Wl,--wrap=_ZNSt6chrono3_V212steady_clock3nowEv, which is std::chrono::steady_clock::now().
#include "fake_clock.hpp"

std::chrono::steady_clock::time_point hier::test::fake_now{std::chrono::hours(1)};

std::chrono::steady_clock::time_point
wrapped_now() __asm__("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

std::chrono::steady_clock::time_point wrapped_now() { return hier::test::fake_now; }
