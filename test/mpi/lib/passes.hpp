// SPDX-License-Identifier: BSD-3-Clause
// Counts the passes of Open MPI's progress loop that this process makes. A program includes it in one file.
#pragma once

#include <dlfcn.h>

namespace hier_test {

inline long passes = 0;

}  // namespace hier_test

// In front of Open MPI's own, which returns nothing in 4.1 and an int in later versions.
extern "C" int opal_progress();
int opal_progress()
{
    static auto* const next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "opal_progress"));
    ++hier_test::passes;
    return next();
}
