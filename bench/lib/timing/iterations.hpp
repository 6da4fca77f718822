// SPDX-License-Identifier: BSD-3-Clause
// How often a size is called.
#pragma once

#include "bench/lib/options/options.hpp"

#include <cstddef>

namespace bench {

[[nodiscard]] long warmup_iterations(const Options& options, std::size_t bytes);

// One iteration takes `elapsed` seconds, which must be the same on all ranks.
[[nodiscard]] long timed_iterations(const Options& options, std::size_t bytes, double elapsed);

}  // namespace bench
