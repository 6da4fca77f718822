// SPDX-License-Identifier: BSD-3-Clause
// Runs the plans of all ranks in virtual time, as the executor would (src/exec/executor.cpp).
//
// As in the executor:
//
// - The rail's puts go in the order of their pairs, with `depth` of them in flight.
// - Node puts and copies go in the order in which they become runnable.
// - A wait ends when the peer has announced, or when as many puts have come.
//
// Assumptions: a core has time for the network whenever there is something to do. An announcement
// takes one latency. A put on the rail is done one latency after it has landed.
//
// Where all nodes are alike it is enough to run one of them. At every moment the bytes that arrive
// there from node n-k are those that it sends to node n+k (rotation), or n^k (exclusive_or).
#pragma once

#include <cstdint>
#include <functional>

#include "hier/plan.hpp"
#include "machine.hpp"

namespace bench::simulator {

enum class Symmetry : std::uint8_t {
    none,      // every rank is run
    rotation,  // only node 0; nodes of equal size, ranks numbered node by node
    exclusive_or,
};

using Planner = std::function<hier::Plan(int rank)>;

struct Outcome {
    double seconds = 0;         // of the slowest rank
    double network_bytes = 0;   // out of the busiest of the nodes that were run
    std::uint64_t ops = 0;      // how many were run
    std::uint64_t max_ops = 0;  // of one rank
};

// Throws std::runtime_error when the plans never end.
[[nodiscard]] Outcome simulate(const hier::Topology& topology, const Machine& machine,
                               Symmetry symmetry, const Planner& planner);

}  // namespace bench::simulator
