// SPDX-License-Identifier: BSD-3-Clause
// What a team is made of, and how its ranks make it together.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "coll/common/rates.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "net/network_transport.hpp"
#include "node/node_transport.hpp"
#include "team/group.hpp"

namespace hier {

struct TeamSetup {
    hier_config config;  // as far as the machine allows it
    std::string name;
    Topology topology;
    bool oversubscribed = false;  // more ranks on this host than cores
    std::unique_ptr<NodeTransport> node;
    std::unique_ptr<NetworkTransport> rail;  // none on a single node
    Rates rates;
    std::size_t max_bytes = 0;  // of all ranks together, that the network can be sure to have
    std::string description;
};

// Collective over the bootstrap's team, of which `team` is the group. `finish` makes the rest, on
// each rank alone. Throws SetupError on all ranks or on none.
void set_up_team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
                 const MakeNetwork& make_network, TeamSetup& setup,
                 const std::function<void()>& finish);

}  // namespace hier
