// SPDX-License-Identifier: BSD-3-Clause
#include "allocations.hpp"

#include <new>

namespace hier::test {

std::atomic<std::size_t> allocations = 0;
std::size_t refused_bytes = 0, refused_number = 0, refusals = 0;

namespace {

void count(std::size_t bytes)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    const bool is_the_one = refused_number > 0 && --refused_number == 0;
    if (is_the_one || (bytes == refused_bytes && bytes > 0)) {
        refusals++;
        throw std::bad_alloc();
    }
}

}  // namespace
}  // namespace hier::test

extern "C" void* __real__Znwm(std::size_t bytes);
extern "C" void* __wrap__Znwm(std::size_t bytes);
extern "C" void* __real__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment);
extern "C" void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment);

extern "C" void* __wrap__Znwm(std::size_t bytes)
{
    hier::test::count(bytes);
    return __real__Znwm(bytes);
}

extern "C" void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment)
{
    hier::test::count(bytes);
    return __real__ZnwmSt11align_val_t(bytes, alignment);
}
