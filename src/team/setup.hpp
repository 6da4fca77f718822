// SPDX-License-Identifier: BSD-3-Clause
// The parts of a team, and how its ranks make them together.
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
#include "tuning/tuning.hpp"

namespace hier {

struct TeamSetup {
    hier_config config;  // as far as the machine allows it
    std::string name;
    Topology topology;
    bool oversubscribed = false;   // more ranks on this host than cores
    bool has_spare_cores = false;  // as many as ranks
    std::unique_ptr<NodeTransport> node;
    std::unique_ptr<NetworkTransport> rail;  // none on a single node
    Rates rates;
    const Tuning* tuning = nullptr;  // whose choices count: all ranks have this file
    // The largest call, of all ranks together, for which the network surely has memory.
    std::size_t max_bytes = 0;
    std::size_t max_skewed = 0;  // the largest block of skewed calls that are published
    bool has_threads = false;    // on all ranks threads may call at the same time
    bool uses_devices = false;   // any rank uses a GPU
    bool bounces_devices =
        false;  // a rank with a GPU has to put its memory through a bounce buffer
    std::string description;
};

// Collective over the bootstrap's team, inside a step of `team`, the group of all its ranks. `finish`
// makes the rest, on each rank alone. What fails on one rank fails the step on all.
void set_up_team(const hier_config& config, const hier_bootstrap& bootstrap, const Group& team,
                 const MakeNetwork& make_network, TeamSetup& setup,
                 const std::function<void()>& finish);

}  // namespace hier
