// SPDX-License-Identifier: BSD-3-Clause
// The place of a rank among its host's GPUs, memory and network devices.
#pragma once

#include <string>
#include <vector>

#include "hier/hier.h"
#include "hier/topology.hpp"
#include "net/network_transport.hpp"

namespace hier {

// The record of this process. Where a GPU runtime is loaded, the record has the GPU that the
// process uses: that of its device memory, or `device_of_thread` if it has none so far.
// `tries_cpu`: the CPU may move blocks of its memory.
PeerRecord own_record(int device_of_thread, bool tries_cpu);

// The NUMA node of a rank's GPU, or else of its cores. -1: not known.
int numa_node(const PeerRecord& record);
// The NUMA node for memory that this rank's data passes through. -1: there is no choice.
int memory_node(const PeerRecord& record);

// Names the GPU, the NUMA node, the network devices and how near they are, as far as known.
std::string describe_place(const std::vector<PeerRecord>& records, const Topology& topology,
                           int rank, const NetworkTraits& network);

}  // namespace hier
