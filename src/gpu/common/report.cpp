// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/report.hpp"

#include <cstdarg>
#include <cstdio>

#include "gpu/common/platform.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

std::atomic<void (*)(int, const char*)> sink_function{nullptr};

}  // namespace

void set_report(void (*sink)(int, const char*)) { sink_function = sink; }

void report(int level, const char* text, ...)
{
    const auto sink = sink_function.load();
    if (sink == nullptr) return;
    char line[512];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    sink(level, line);
}

static Status status_of(hipError_t error, const char* what, int level)
{
    (void)hipGetLastError();
    report(level, "%s: %s: %s", platform_name, what, hipGetErrorString(error));
    return error == hipErrorOutOfMemory ? Status::out_of_memory : Status::transport_error;
}

Status failed_with(hipError_t error, const char* what)
{
    return status_of(error, what, HIER_LOG_ERROR);
}

Status refused_with(hipError_t error, const char* what, std::atomic<bool>& is_told)
{
    return status_of(error, what, is_told.exchange(true) ? HIER_LOG_DEBUG : HIER_LOG_ERROR);
}

}  // namespace hier::gpu
