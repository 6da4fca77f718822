// SPDX-License-Identifier: BSD-3-Clause
// The machine that plans run on in virtual time. Rates are in bytes per second, times in seconds.
//
//     rank --copy queue--> GPU port ==link==> GPU port        inside a node (or the CPU, see is_host)
//     rank --window------> NIC ======network======> NIC       between nodes
//
// Every port is taken first come, first served, in each direction by itself. Bytes that enter a
// NIC's egress leave `nic_latency` later for the receiver's ingress, where they may queue again.
// The network in between has room for everything. Uncontended, n bytes take latency + n / rate.
#pragma once

#include <cstddef>
#include <vector>

namespace bench::simulator {

struct Machine {
    bool is_host = false;  // buffers in host memory: the ranks' cores copy

    // NICs of a node; 0: one for each rank. Ranks share NICs, or each rank has several as its
    // lanes.
    int nics = 0;
    int lanes = 1;    // of a rank in a call. Local rank l uses NICs (l * lanes + lane) % nics
    int stripes = 1;  // of the puts to one peer over the lanes; src/net/stripes.hpp
    double nic_rate = 50e9;
    double nic_latency = 5e-6;

    // Device memory. A rank's copies are issued one by one. Each stream runs one copy at a time,
    // from its start until the last byte and its flag are there.
    double link_rate = 393e9;  // of a GPU's port
    double link_latency = 2e-6;
    double copy_issue = 0.5e-6;  // in a batch, as hier issues copies on CUDA
    int streams = 2;             // a batch behaves like two: starts hide behind bytes
    // From the issue of a copy or a kernel until the device begins. Waiting copies hide it.
    double launch = 0;
    // Kernels push blocks of up to so many bytes to all other ranks of a node. 0: there are none.
    // A kernel takes one issue and one latency for all blocks that wait. Kernels of a rank follow one
    // another, `kernel_gap` apart.
    std::size_t fan_out = 0;
    double kernel_gap = 0;
    double copy_rate = 2e12;  // inside a GPU's memory
    double stage_rate = 0;    // between device and bounce buffer, each direction; 0: not staged

    // Host memory. A push takes the core of its rank and the memory of the node.
    double core_rate = 8e9;
    double memory_rate = 40e9;

    // Small calls. Messages of up to `eager_bytes` wait for nobody: a rank's block or a bundle.
    // Each message takes `message` of the core at either end, and `nic_gap` of the NIC in either
    // direction.
    std::size_t eager_bytes = 32 << 10;
    bool is_eager = false;  // set by a call whose messages are eager
    double message = 0.5e-6;
    double nic_gap = 0;
    // In place of link_latency, for host memory: the latency of blocks of up to small_bytes, and of
    // such blocks that go to all of a node at once.
    double small_latency = 0.4e-6;
    std::size_t small_bytes = 16 << 10;
    double publish_latency = 0.15e-6;
    // The bytes of a rank's publish, and the extra bytes of each block, as in
    // src/node/host/node_publish.hpp.
    std::size_t publish_space = 32704, publish_block = 23;

    double overhead = 0;  // of a call, whatever its size
    double skew = 0;      // local rank l of every node enters l times this after the first
    int depth = 0;        // puts of a rank in flight to other nodes; 0: as in the plan

    [[nodiscard]] int nics_of(int ranks) const { return nics > 0 ? nics : ranks; }
};

// The times that no algorithm beats. ranks_of[n] is the number of ranks on node n.
struct Bound {
    double network = 0;  // bytes that enter the busiest node / rate of its NICs
    double links = 0;    // bytes that its ranks need / rate of its NICs and links
    // A bound only for algorithms that take every block over the network once.
    double links_once = 0;
    [[nodiscard]] double seconds() const { return network > links ? network : links; }
    [[nodiscard]] double seconds_once() const
    {
        return network > links_once ? network : links_once;
    }
};
// The bound by bandwidth alone.
[[nodiscard]] Bound lower_bound(const std::vector<int>& ranks_of, std::size_t bytes,
                                const Machine& machine);
// The bound that adds the latencies that nobody avoids. bound.cpp has the proof.
[[nodiscard]] Bound latency_bound(const std::vector<int>& ranks_of, std::size_t bytes,
                                  const Machine& machine);

}  // namespace bench::simulator
