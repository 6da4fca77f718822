// SPDX-License-Identifier: BSD-3-Clause
#include "count_allocations.hpp"

#include <new>

namespace hier::test {

std::size_t allocations = 0, refused_bytes = 0, refused_number = 0, refusals = 0;

}  // namespace hier::test

extern "C" void* __real__Znwm(std::size_t bytes);
extern "C" void* __wrap__Znwm(std::size_t bytes);

extern "C" void* __wrap__Znwm(std::size_t bytes)
{
    hier::test::allocations++;
    const bool is_the_one = hier::test::refused_number > 0 && --hier::test::refused_number == 0;
    if (is_the_one || (bytes == hier::test::refused_bytes && bytes > 0)) {
        hier::test::refusals++;
        throw std::bad_alloc();
    }
    return __real__Znwm(bytes);
}
