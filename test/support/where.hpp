// SPDX-License-Identifier: BSD-3-Clause
// A place in the source: as a default argument, the place of the call.
#pragma once

namespace hier::test {

// (clang 14 has no std::source_location with GCC's library.)
struct Where {
    const char* file;
    int line;
    static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return {file, line};
    }
};

}  // namespace hier::test
