// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <hip/hip_version.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hip_sim {

namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t max)
{
    const char* text = std::getenv(name);
    if (text == nullptr) return otherwise;
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > max)
        give_up("%s=%s is not a number from 0 to %llu", name, text,
                static_cast<unsigned long long>(max));
    return value;
}

Options read()
{
    constexpr std::uint64_t no_rank = UINT32_MAX;
    const auto rank = number("OMPI_COMM_WORLD_RANK", no_rank, no_rank);

    Options o;
    o.devices = static_cast<int>(number("HIP_SIM_DEVICES", 8, 16));
    o.delay_us = static_cast<unsigned>(number("HIP_SIM_DELAY_US", 50, 10000000));
    o.least_delay_us = static_cast<unsigned>(number("HIP_SIM_LEAST_DELAY_US", 0, 10000000));
    o.seed = static_cast<unsigned>(number("HIP_SIM_SEED", 1, 1000000) * 4096 + (rank & 4095));
    o.hidden = number("HIP_SIM_HIDDEN", 1, 1) != 0;
    const auto bar = number("HIP_SIM_LARGE_BAR", 0, 3);
    o.has_large_bar = bar != 0;
    o.needs_flush = bar % 2 != 0;
    o.has_flush_register = bar == 1;
    o.version = static_cast<int>(number("HIP_SIM_VERSION", HIP_VERSION, INT32_MAX));
    o.reaches_all = number("HIP_SIM_XNACK", 0, 1) != 0;
    o.has_no_cu_kind = number("HIP_SIM_NOCU", 0, 1) != 0;
    if (std::getenv("HIP_SIM_FAIL_RANK") == nullptr ||
        number("HIP_SIM_FAIL_RANK", 0, no_rank - 1) == rank) {
        o.failing_call = number("HIP_SIM_FAIL", 0, UINT64_MAX);
        o.failing_copy = number("HIP_SIM_FAIL_ASYNC", 0, UINT64_MAX);
        o.hanging_copy = number("HIP_SIM_HANG_ASYNC", 0, UINT64_MAX);
    }
    if (const char* report = std::getenv("HIP_SIM_REPORT")) o.report = report;
    return o;
}

}  // namespace

// Never destroyed, because the threads of streams run until the process is gone.
const Options& options()
{
    static const Options& read_once = *new Options(read());
    return read_once;
}

void give_up(const char* format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "hip_sim: %s\n", line);
    std::abort();
}

}  // namespace hip_sim
