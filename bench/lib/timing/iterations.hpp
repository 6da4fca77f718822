// SPDX-License-Identifier: BSD-3-Clause
// The number of calls of a size.
#pragma once

#include "bench/lib/options/options.hpp"

#include <cstddef>

namespace bench {

[[nodiscard]] long warmup_iterations(const Options& options, std::size_t bytes);

// `elapsed`: seconds of one iteration, the same on all ranks.
[[nodiscard]] long timed_iterations(const Options& options, std::size_t bytes, double elapsed);

}  // namespace bench
