// SPDX-License-Identifier: BSD-3-Clause
// The load of an allgather on the busiest rank, network device and node, by route.
#pragma once

#include <vector>

#include "coll/common/choice.hpp"
#include "hier/topology.hpp"

namespace hier {

// In shards. With bundles, `out`, `in` and `entering` are in messages.
struct RouteLoad {
    struct Node {
        int members;
        int entering;  // at one rank
        int shards;    // the same, in shards
    };
    int out = 0;              // of a rank
    int in = 0;               // to a rank
    int nic = 0;              // in or out of a network device
    int nic_messages = 0;     // the same, in messages
    std::vector<Node> nodes;  // a single one if all are alike
};

// Local rank l of a node uses the network device l % nics. nics 0: one for each rank.
RouteLoad route_load(const Topology& topology, int nics, Route route);

}  // namespace hier
