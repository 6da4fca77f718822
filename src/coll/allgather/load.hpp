// SPDX-License-Identifier: BSD-3-Clause
// What an allgather asks of the busiest rank, network device and node, by route.
#pragma once

#include <vector>

#include "coll/common/choice.hpp"
#include "hier/topology.hpp"

namespace hier {

// In shards; of bundles, `out`, `in` and `entering` in messages.
struct RouteLoad {
    struct Node {
        int members;
        int entering;  // at one rank
        int shards;    // that this is
    };
    int out = 0;              // of a rank
    int in = 0;               // to a rank
    int nic = 0;              // in or out of a network device
    int nic_messages = 0;     // likewise, in messages
    std::vector<Node> nodes;  // one where all are alike
};

// Local rank l of a node uses its network device l % nics; nics 0: one a rank.
RouteLoad route_load(const Topology& topology, int nics, Route route);

}  // namespace hier
