#include "count_allocations.hpp"

namespace hier::test {

std::size_t allocations = 0;

}  // namespace hier::test

extern "C" void* __real__Znwm(std::size_t bytes);
extern "C" void* __wrap__Znwm(std::size_t bytes);

extern "C" void* __wrap__Znwm(std::size_t bytes)
{
    hier::test::allocations++;
    return __real__Znwm(bytes);
}
