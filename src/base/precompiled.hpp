// SPDX-License-Identifier: BSD-3-Clause
// The standard headers that most files include, for g++ to read once. The build includes this file
// first in every file, where g++ is the compiler. No file relies on it: a build by clang, or with
// --disable-precompiled-headers, goes without. It has no #pragma once, of which g++ warns in a file
// that it compiles by itself.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>
