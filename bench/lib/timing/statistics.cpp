// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace bench {

double percentile(const std::vector<double>& sorted, double percent)
{
    const double samples = static_cast<double>(sorted.size());
    const double rank = std::clamp(std::ceil(percent / 100.0 * samples), 1.0, samples);
    return sorted[static_cast<std::size_t>(rank) - 1];
}

Statistics summarize(std::vector<double> samples)
{
    if (samples.empty()) {
        return {};
    }
    std::ranges::sort(samples);
    const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
    return {samples.front(), percentile(samples, 50.0), percentile(samples, 99.0),
            sum / static_cast<double>(samples.size())};
}

}  // namespace bench
