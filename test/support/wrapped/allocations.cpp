// SPDX-License-Identifier: BSD-3-Clause
#include "allocations.hpp"

#include <new>

namespace hier::test {

std::atomic<std::size_t> allocations = 0;
std::size_t refused_bytes = 0, refused_number = 0, refusals = 0;

}  // namespace hier::test

extern "C" void* __real__Znwm(std::size_t bytes);
extern "C" void* __wrap__Znwm(std::size_t bytes);

extern "C" void* __wrap__Znwm(std::size_t bytes)
{
    using namespace hier::test;
    allocations.fetch_add(1, std::memory_order_relaxed);
    const bool is_the_one = refused_number > 0 && --refused_number == 0;
    if (is_the_one || (bytes == refused_bytes && bytes > 0)) {
        refusals++;
        throw std::bad_alloc();
    }
    return __real__Znwm(bytes);
}
