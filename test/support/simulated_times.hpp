// SPDX-License-Identifier: BSD-3-Clause
// Times on the machine of bench/simulate, and their comparison.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include "tools/simulator/algorithms.hpp"

namespace hier::test {

inline constexpr std::size_t mega = 1 << 20;

// Copies run one by one, so that times can be computed by hand.
inline bench::simulator::Options even(int nodes, int ranks)
{
    bench::simulator::Options options;
    options.nodes = nodes;
    options.gpus = ranks;
    options.machine.streams = 1;
    options.machine.copy_issue = 2.3e-6;
    return options;
}

inline double seconds_of(const bench::simulator::Options& options, std::size_t bytes, Route route,
                         std::size_t chunk)
{
    const auto topology = bench::simulator::make_topology(options.ranks_of());
    return run_hier(topology, options, bytes, {route, chunk, 2}).seconds;
}

inline std::string text(double seconds) { return std::to_string(seconds * 1e6) + " us"; }

// Empty if they differ by no more than some picoseconds.
inline std::string differs(const std::string& what, double got, double wanted)
{
    constexpr double rounding = 1e-11;
    if (std::abs(got - wanted) <= rounding) return "";
    return what + ": " + text(got) + " instead of " + text(wanted) + "; ";
}

}  // namespace hier::test
