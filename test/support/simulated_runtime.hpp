// SPDX-License-Identifier: BSD-3-Clause
// Loads the simulated runtime, as an application would load the real one.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace hier::test {

inline std::string load()
{
    return dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_LOCAL) != nullptr ? "" : dlerror();
}

template <class F> void find(void* library, const char* name, F*& function)
{
    function = reinterpret_cast<F*>(dlsym(library, name));
}

// Allocates on a device of the loaded library.
inline void* simulated_memory()
{
    int (*allocate)(void**, std::size_t) = nullptr;
    find(dlopen(HIER_TEST_SIMULATED, RTLD_NOW | RTLD_NOLOAD), "hipMalloc", allocate);
    void* memory = nullptr;
    if (allocate(&memory, 64) != 0) throw std::runtime_error("no device memory");
    return memory;
}

}  // namespace hier::test
