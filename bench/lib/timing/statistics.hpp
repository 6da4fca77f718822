// SPDX-License-Identifier: BSD-3-Clause
// Order statistics of a timed loop.
#pragma once

#include <vector>

namespace bench {

struct Statistics {
    double min = 0.0;
    double median = 0.0;
    double p99 = 0.0;
    double mean = 0.0;
};

// The nearest rank: the smallest sample that at least `percent` per cent of the samples do not
// exceed. `sorted` is ascending and not empty; `percent` is in (0, 100].
[[nodiscard]] double percentile(const std::vector<double>& sorted, double percent);

// All zero if there are no samples.
[[nodiscard]] Statistics summarize(std::vector<double> samples);

}  // namespace bench
