#include "error.hpp"

#include <cstdarg>
#include <cstdio>

namespace hier {

std::string format(const char* text, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    return line;
}

}  // namespace hier
