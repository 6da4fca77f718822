// SPDX-License-Identifier: BSD-3-Clause
// Teams and calls to run: machines as short strings, every small team, shards of all kinds.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "model.hpp"

namespace hier::model {

// "2,3,1": nodes of 2, 3 and 1 ranks, numbered node by node.
std::vector<int> nodes_of_sizes(const std::vector<int>& sizes);

// All ways to cut `ranks` ranks into nodes, in order: {3}, {2,1}, {1,2}, {1,1,1}.
std::vector<std::vector<int>> compositions(int ranks);

// The same node sizes, with ranks in any order over the nodes, and any local order.
Topology shuffled(std::vector<int> node_of_rank, std::mt19937& random);

// One shard for each rank, in any order in the buffer, of 0 to `most` bytes, with gaps between
// them.
std::vector<Extent> uneven_shards(int ranks, std::size_t most, std::mt19937& random);

// By rank: in place or not, with a bounce buffer or not.
std::vector<bool> some_of(int ranks, std::mt19937& random);
std::vector<bool> none_some_or_all_of(int ranks, std::mt19937& random);

// Inspects the plans and runs them. Empty, or what went wrong.
std::string judge(const Topology& topology, const std::vector<Call>& calls,
                  const Schedule& schedule);

// Text for a message.
std::string describe(const Topology& topology);

}  // namespace hier::model
