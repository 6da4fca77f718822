// SPDX-License-Identifier: BSD-3-Clause
// What there is to run on one machine, by name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "coll/allgather/plan.hpp"
#include "hier/topology.hpp"
#include "options.hpp"
#include "simulator.hpp"

namespace bench::simulator {

struct Result {
    std::string algorithm;
    hier::Choice choice;  // ours
    Outcome outcome;
};

[[nodiscard]] hier::Topology make_topology(const std::vector<int>& ranks_of);
// NICs that every rank can have to itself, as the product gives them out.
[[nodiscard]] int lanes_of(const Machine& machine, const std::vector<int>& ranks_of);
// What the product's cost model is told of the machine.
[[nodiscard]] hier::Rates rates_of(const Machine& machine);
[[nodiscard]] hier::Rates small_rates_of(const Machine& machine);  // and what small calls take
[[nodiscard]] bool is_even(const std::vector<int>& ranks_of);

// Ours, with the plans of the product.
[[nodiscard]] hier::AllgatherShape
shape_of(const Options& options, std::span<const hier::Extent> shards, const hier::Choice& choice);
[[nodiscard]] Outcome run_hier(const hier::Topology& topology, const Options& options,
                               std::size_t bytes, const hier::Choice& choice);
// Every row that the options ask for. Throws std::runtime_error.
[[nodiscard]] std::vector<Result> run_all(const Options& options, std::size_t bytes);

}  // namespace bench::simulator
