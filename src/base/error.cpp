// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace hier {

std::string format(const char* text, ...)
{
    va_list arguments, again;
    va_start(arguments, text);
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, text, arguments);
    std::string line(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    std::vsnprintf(line.data(), line.size() + 1, text, again);
    va_end(again);
    va_end(arguments);
    return line;
}

}  // namespace hier
