// SPDX-License-Identifier: BSD-3-Clause
#include "iterations.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr long fewest_iterations = 10;

// Enough calls for a stable median. Small sizes are cheap and vary more.
long usual_iterations(std::size_t bytes)
{
    return bytes <= 8 * 1024 ? 1000 : bytes <= 512 * 1024 ? 200 : 100;
}

}  // namespace

long warmup_iterations(const Options& options, std::size_t bytes)
{
    return options.warmup >= 0 ? options.warmup : bytes <= 8 * 1024 ? 20 : 5;
}

long timed_iterations(const Options& options, std::size_t bytes, double elapsed)
{
    if (options.iterations > 0) {
        return options.iterations;
    }
    const double affordable = options.seconds / std::max(elapsed, 1e-9);
    const long usual = usual_iterations(bytes);
    return affordable >= static_cast<double>(usual)
               ? usual
               : std::max(fewest_iterations, static_cast<long>(affordable));
}

}  // namespace bench
