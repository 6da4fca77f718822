// Needs -Wl,--wrap=_ZNSt6chrono3_V212steady_clock3nowEv, which is std::chrono::steady_clock::now().
#include "fake_clock.hpp"

std::chrono::steady_clock::time_point hier::test::fake_now{std::chrono::hours(1)};

extern "C" std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv();

extern "C" std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv()
{
    return hier::test::fake_now;
}
