// What there is to run on one machine, by name.
#pragma once

#include <string>
#include <vector>

#include "hier/topology.hpp"
#include "options.hpp"
#include "plan/cost.hpp"
#include "simulator.hpp"

namespace bench::simulator {

struct Result {
    std::string algorithm;
    std::size_t chunk = 0;  // 0: none
    Outcome outcome;
};

[[nodiscard]] hier::Topology make_topology(const std::vector<int>& ranks_of);
[[nodiscard]] hier::Rates rates_of(const Machine& machine);
[[nodiscard]] bool is_even(const std::vector<int>& ranks_of);

// ours, with the plans of the product.
[[nodiscard]] Outcome run_hier(const hier::Topology& topology, const Options& options,
                               std::size_t bytes, hier::Route route, std::size_t chunk);
// Every row that the options ask for. Throws std::runtime_error.
[[nodiscard]] std::vector<Result> run_all(const Options& options, std::size_t bytes);

// The product's choices.
[[nodiscard]] hier::Route product_route(const hier::Topology& topology);
[[nodiscard]] std::size_t product_chunk(const hier::Topology& topology, const Options& options,
                                        std::size_t bytes);

}  // namespace bench::simulator
