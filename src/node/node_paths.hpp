// SPDX-License-Identifier: BSD-3-Clause
// Makes the paths that the ranks of a node and its system allow.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "node/device/cells/device_cells.hpp"
#include "node/device/copy_engines.hpp"
#include "node/device/device_publish.hpp"
#include "node/device/exports/receive_offer.hpp"
#include "node/device/imports/peer_buffers.hpp"
#include "node/host/cma_path.hpp"
#include "node/host/cma_trial.hpp"
#include "node/host/node_publish.hpp"
#include "node/host/shm_cells.hpp"
#include "node/path_choice.hpp"
#include "team/group.hpp"

namespace hier {

// The ranks of a node.
struct NodeRanks {
    std::vector<CmaTarget> processes;  // by node rank
    int team = 0;                      // ranks of the team
    bool have_devices = false;         // any rank uses a GPU runtime
    bool share_gpus = false;           // several ranks use the same GPU; only on a single node
    bool gpu_turns = false;            // such ranks get it in turns
    bool have_kernels = false;         // all ranks have, and gain by them; only on a single node
    FanOutUse fan_out = FanOutUse::never;  // on several nodes too
    std::size_t max_by_cpu = 0;  // block of device memory that the CPU moves; 0 on several nodes
    bool share_cores = false;    // the host has more ranks than cores
    int numa = -1;               // the NUMA node for this rank's cells; -1: anywhere
};

// A null pointer stands for a path that the node does not have.
struct NodePaths {
    std::unique_ptr<CmaPath> cma;
    std::unique_ptr<ShmCells> cells;
    std::unique_ptr<NodePublish> publish;
    // In its place in calls that all ranks publish, if they share GPUs, have kernels, or reach device
    // memory by the CPU.
    std::unique_ptr<DevicePublish> device_publish;
    // These exist if any rank uses a GPU. A rank that is alone on its node has engines only.
    std::unique_ptr<DeviceCells> device_cells;
    std::unique_ptr<ReceiveOffer> offer;
    std::unique_ptr<PeerBuffers> buffers;
    std::unique_ptr<CopyEngines> engines;

    PathChoice choice;
    static constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();
    // The largest published block of host memory on a single node; the same of skewed calls.
    std::size_t max_published = PathChoice::max_through_cells, max_skewed = 0;
    std::string name;
};

// Collective over the node's group, inside a step of it. The context outlives the paths. `needs`
// says what the context's segment holds.
NodePaths make_node_paths(NodeContext& context, const Group& group, const NodeRanks& ranks,
                          const NodeNeeds& needs);

}  // namespace hier
