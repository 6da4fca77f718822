// SPDX-License-Identifier: BSD-3-Clause
// Where a rank is among its host's GPUs, memory and network devices, and what follows for it.
#pragma once

#include <string>
#include <vector>

#include "hier/hier.h"
#include "hier/topology.hpp"
#include "net/network_transport.hpp"

namespace hier {

// The record of this process, with the GPU that it uses where its runtime is loaded.
PeerRecord own_record();

// The NUMA node of a rank's GPU, else of its cores; -1: not known.
int numa_node(const PeerRecord& record);
// That which is to hold what this rank's data passes through; -1: there is no choice.
int memory_node(const PeerRecord& record);

// GPU, NUMA node, network devices and how near these are, as far as known.
std::string describe_place(const std::vector<PeerRecord>& records, const Topology& topology,
                           int rank, const NetworkTraits& network);

}  // namespace hier
