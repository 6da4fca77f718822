// SPDX-License-Identifier: BSD-3-Clause
// The simulated GDRCopy. Where no test loads it, hier finds none.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>

#include "test/sim/cuda/gdr_sim.h"

namespace hier::test {

inline void* load_gdrcopy()
{
    void* const library = dlopen(HIER_TEST_GDRCOPY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return library;
}

// See gdr_sim_count().
inline std::uint64_t count_of_gdrcopy(const char* what)
{
    static const auto count =
        reinterpret_cast<decltype(&gdr_sim_count)>(dlsym(load_gdrcopy(), "gdr_sim_count"));
    return count(what);
}

}  // namespace hier::test
