// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <string>

namespace hier::test {

// A file of the source tree: below $top_srcdir, or below the tree that the program was built from.
inline std::string source_file(const std::string& path)
{
    const char* top = std::getenv("top_srcdir");
    return std::string(top != nullptr ? top : HIER_TEST_SOURCES) + '/' + path;
}

}  // namespace hier::test
