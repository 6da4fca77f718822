// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace hier {
namespace {

std::atomic<int> highest{HIER_LOG_ERROR};
std::atomic<void (*)(int, const char*)> sink_function{nullptr};

}  // namespace

void set_log(int level, void (*sink)(int, const char*))
{
    highest = level;
    sink_function = sink;
}

bool log_enabled(int level) { return level <= highest && sink_function != nullptr; }

void log(int level, const char* format, ...)
{
    if (!log_enabled(level)) return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    sink_function.load()(level, line);
}

}  // namespace hier
