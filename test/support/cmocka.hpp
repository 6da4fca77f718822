// SPDX-License-Identifier: BSD-3-Clause
// CMocka for C++. Include this last: cmocka.h defines macros with common names (fail, skip).
//
// A failing assertion leaves the test by longjmp, over the destructors of everything alive. So a
// check is a function that returns plain data (a reason, a number). The test asserts on that data
// and holds nothing that needs destroying.
#pragma once

// Headers that cmocka.h needs, and the C++ headers that must not be met inside extern "C".
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "where.hpp"

extern "C" {
#include <cmocka.h>
}

namespace hier::test {

// Runs the cases that the command line names by shell patterns; without patterns, all of them.
// `--list` prints their names, `--help` says so. Returns the exit status of the program.
int run_cases(int argc, char** argv, const char* group, std::span<const CMUnitTest> cases,
              CMFixtureFunction set_up = nullptr, CMFixtureFunction tear_down = nullptr);

// Keeps a reason where no destructor is needed. An empty reason gives a null pointer: all is well.
inline const char* keep(const std::string& reason)
{
    static char kept[2048];
    std::snprintf(kept, sizeof kept, "%s", reason.c_str());
    return reason.empty() ? nullptr : kept;
}

// Fails the test with the reason in `why`, if there is one. CMocka reports the caller's line. A
// helper that several tests share takes a Where of its own and passes it on.
inline void expect_no_reason(const char* why, Where where = Where::current())
{
    if (why == nullptr) return;
    std::fprintf(stderr, "ERROR: %s\n", why);
    _fail(where.file, where.line);
}

}  // namespace hier::test
