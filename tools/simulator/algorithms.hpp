// SPDX-License-Identifier: BSD-3-Clause
// The algorithms that can run on a machine, by name.
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
    hier::Choice choice;  // only for hier
    Outcome outcome;
};

[[nodiscard]] hier::Topology make_topology(const std::vector<int>& ranks_of);
// How many NICs every rank can have to itself, by the rule of hier.
[[nodiscard]] int lanes_of(const Machine& machine, const std::vector<int>& ranks_of);
// The machine as hier's cost model sees it.
[[nodiscard]] hier::Rates rates_of(const Machine& machine);
[[nodiscard]] hier::Rates small_rates_of(const Machine& machine);  // with the rates of small calls
[[nodiscard]] bool is_even(const std::vector<int>& ranks_of);

// The plans of hier itself.
[[nodiscard]] hier::AllgatherShape
shape_of(const Options& options, std::span<const hier::Extent> shards, const hier::Choice& choice);
[[nodiscard]] Outcome run_hier(const hier::Topology& topology, const Options& options,
                               std::size_t bytes, const hier::Choice& choice);
// Every row that the options ask for. Throws std::runtime_error.
[[nodiscard]] std::vector<Result> run_all(const Options& options, std::size_t bytes);

}  // namespace bench::simulator
