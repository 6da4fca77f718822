// SPDX-License-Identifier: BSD-3-Clause
// The options of bench/simulate.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hier/plan.hpp"
#include "machine.hpp"

namespace bench::simulator {

enum class RouteChoice { both, best, direct, ring, bundles };

struct Options {
    int nodes = 2;
    int gpus = 8;             // ranks of a node
    std::vector<int> layout;  // ranks of each node; empty: nodes of `gpus`
    std::vector<std::size_t> sizes{1 << 20};
    Machine machine;
    std::optional<double> link_latency, launch, kernel_gap;
    std::optional<std::size_t>
        fan_out;  // none: as the product, whose kernels push on several nodes
    bool is_staged = false;
    double stage_rate = 50e9;
    bool is_in_place = false;
    bool is_full = false;  // run every rank even if one node would do
    RouteChoice route = RouteChoice::both;
    std::size_t chunk = 0;  // 0: by the cost model
    std::vector<std::string> algorithms{"hier", "ring", "doubling", "leader"};
    std::string csv;
    std::string calibrate;
    bool help = false;

    [[nodiscard]] std::vector<int> ranks_of() const;  // by node
};

// Takes the arguments without the program's name. Empty, or what is wrong with them.
[[nodiscard]] std::string parse_options(const std::vector<std::string>& arguments,
                                        Options& options);
[[nodiscard]] const char* usage();

}  // namespace bench::simulator
