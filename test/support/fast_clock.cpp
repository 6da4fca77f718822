// SPDX-License-Identifier: BSD-3-Clause
// Needs -Wl,--wrap=_ZNSt6chrono3_V212steady_clock3nowEv. The core's clock runs ten times as fast,
// so that bounds of tens of seconds can be met in a test. The tests' own bounds use another clock.
#include <chrono>

using Clock = std::chrono::steady_clock;

Clock::time_point real_now() __asm__("__real__ZNSt6chrono3_V212steady_clock3nowEv");
Clock::time_point wrapped_now() __asm__("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

Clock::time_point wrapped_now()
{
    static const Clock::time_point start = real_now();
    const Clock::time_point now = real_now();
    return start + 10 * (now - start);
}
