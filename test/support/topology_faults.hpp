// SPDX-License-Identifier: BSD-3-Clause
// Checks that hold for every topology. Each returns what is wrong, or "".
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hier/topology.hpp"
#include "machine.hpp"

namespace hier::test {

inline std::vector<int> list(std::span<const int> ranks) { return {ranks.begin(), ranks.end()}; }

inline std::string fault_of_nodes(const Topology& t, const std::vector<int>& node_of_rank)
{
    std::vector<int> lowest;
    std::size_t members = 0;
    for (int n = 0; n < t.nodes(); n++) {
        const auto ranks = list(t.ranks_on(n));
        members += ranks.size();
        lowest.push_back(*std::min_element(ranks.begin(), ranks.end()));
        for (std::size_t l = 0; l < ranks.size(); l++) {
            if (t.node_of(ranks[l]) != n || t.local_of(ranks[l]) != static_cast<int>(l)) {
                return "node_of or local_of contradicts ranks_on";
            }
        }
    }
    if (members != node_of_rank.size()) return "the nodes do not hold every rank once";
    if (!std::is_sorted(lowest.begin(), lowest.end()))
        return "nodes are not numbered by lowest rank";
    for (int a = 0; a < t.size(); a++) {
        for (int b = 0; b < t.size(); b++) {
            const bool together = node_of_rank[static_cast<std::size_t>(a)] ==
                                  node_of_rank[static_cast<std::size_t>(b)];
            if (together != (t.node_of(a) == t.node_of(b))) return "wrong ranks share a node";
        }
    }
    return "";
}

inline std::string fault_of_rails(const Topology& t)
{
    std::size_t members = 0;
    std::size_t smallest = static_cast<std::size_t>(t.size());
    for (int n = 0; n < t.nodes(); n++) smallest = std::min(smallest, t.ranks_on(n).size());
    if (t.rails() != static_cast<int>(smallest))
        return "not as many rails as the smallest node has ranks";
    for (int rail = 0; rail < t.rails(); rail++) {
        const auto ranks = list(t.ranks_on_rail(rail));
        members += ranks.size();
        std::vector<bool> met(static_cast<std::size_t>(t.nodes()));
        for (std::size_t i = 0; i < ranks.size(); i++) {
            met[static_cast<std::size_t>(t.node_of(ranks[i]))] = true;
            if (t.rail_of(ranks[i]) != rail || t.rail_index_of(ranks[i]) != static_cast<int>(i)) {
                return "rail_of or rail_index_of contradicts ranks_on_rail";
            }
            if (i > 0 && std::pair(t.node_of(ranks[i - 1]), t.local_of(ranks[i - 1])) >=
                             std::pair(t.node_of(ranks[i]), t.local_of(ranks[i]))) {
                return "a rail is not in the order of nodes and local indices";
            }
        }
        if (std::find(met.begin(), met.end(), false) != met.end()) return "a rail misses a node";
    }
    return members == static_cast<std::size_t>(t.size()) ? ""
                                                         : "the rails do not hold every rank once";
}

// How many shards of other nodes enter at each rank of `node`, by local index.
inline std::vector<int> entry_loads(const Topology& t, int node)
{
    std::vector<int> loads(t.ranks_on(node).size());
    for (int source = 0; source < t.size(); source++) {
        if (t.node_of(source) != node) {
            loads[static_cast<std::size_t>(t.local_of(t.entry(source, node)))]++;
        }
    }
    return loads;
}

// Within a rail the ranks of a node share the load to within one shard. Between rails they cannot
// always: a shard stays on its rail, and a node may have two ranks on one rail and one on another.
inline std::string fault_of_entries(const Topology& t)
{
    for (int node = 0; node < t.nodes(); node++) {
        for (int source = 0; source < t.size(); source++) {
            const int entry = t.entry(source, node);
            if (t.node_of(entry) != node) return "a shard enters at a rank of another node";
            if (t.rail_of(entry) != t.rail_of(source)) return "a shard leaves its rail";
            if (t.node_of(source) == node && entry != source) return "a shard enters its own node";
        }
        const auto loads = entry_loads(t, node);
        for (std::size_t a = 0; a < loads.size(); a++) {
            for (std::size_t b = a; b < loads.size(); b += static_cast<std::size_t>(t.rails())) {
                if (std::abs(loads[a] - loads[b]) > 1) {
                    return "on node " + std::to_string(node) + " local ranks " + std::to_string(a) +
                           " and " + std::to_string(b) + " of one rail take " +
                           std::to_string(loads[a]) + " and " + std::to_string(loads[b]) +
                           " shards";
                }
            }
        }
    }
    return "";
}

inline std::string fault_of(const Topology& t, const std::vector<int>& node_of_rank)
{
    std::string fault = fault_of_nodes(t, node_of_rank);
    if (fault.empty()) fault = fault_of_rails(t);
    if (fault.empty()) fault = fault_of_entries(t);
    return fault.empty() ? "" : fault + ", nodes of ranks: " + text_of(node_of_rank);
}

}  // namespace hier::test
