// SPDX-License-Identifier: BSD-3-Clause
#include "clock.hpp"

using Clock = std::chrono::steady_clock;

// The linker's --wrap, by the mangled name of steady_clock::now().
Clock::time_point real_now() __asm__("__real__ZNSt6chrono3_V212steady_clock3nowEv");
Clock::time_point wrapped_now() __asm__("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

namespace hier::test {

Clock::time_point fake_now{std::chrono::hours(1)};
unsigned long fake_reads = 0;

namespace {
ClockMode chosen = ClockMode::real;
Clock::time_point fast_since;
}  // namespace

void use_clock(ClockMode mode)
{
    fast_since = real_now();
    chosen = mode;
}

}  // namespace hier::test

Clock::time_point wrapped_now()
{
    using namespace hier::test;
    switch (chosen) {
    case ClockMode::real:
        break;
    case ClockMode::fast:
        return fast_since + 10 * (real_now() - fast_since);
    case ClockMode::fake:
        fake_reads++;
        return fake_now;
    }
    return real_now();
}
