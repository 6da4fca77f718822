// SPDX-License-Identifier: BSD-3-Clause
// CMocka for C++. Include this last: cmocka.h defines macros with common names (fail, skip).
//
// A failing assertion leaves the test by longjmp, over the destructors of everything alive. So a
// check is a function that returns plain data (a reason, a number), and a test asserts on that,
// holding nothing that needs destroying.
#pragma once

// What cmocka.h expects to be there, and the C++ headers that must not be met inside extern "C".
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

extern "C" {
#include <cmocka.h>
}

namespace hier::test {

// Keeps a reason where no destructor is needed; empty reasons (all is well) give a null pointer.
inline const char* keep(const std::string& reason)
{
    static char kept[2048];
    std::snprintf(kept, sizeof kept, "%s", reason.c_str());
    return reason.empty() ? nullptr : kept;
}

// Fails the test with the reason that `why` holds, if it holds one.
inline void expect_no_reason(const char* why)
{
    if (why != nullptr) fail_msg("%s", why);
}

}  // namespace hier::test
