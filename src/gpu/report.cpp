#include "gpu/report.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "gpu/platform.hpp"
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

Status failed_with(hipError_t error, const char* what)
{
    (void)hipGetLastError();
    report(HIER_LOG_ERROR, "%s: %s: %s", platform_name, what, hipGetErrorString(error));
    return error == hipErrorOutOfMemory ? Status::out_of_memory : Status::transport_error;
}

}  // namespace hier::gpu
