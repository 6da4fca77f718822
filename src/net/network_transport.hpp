// SPDX-License-Identifier: BSD-3-Clause
// The rail level of a team, as the team sees it, and the function that makes one. Nothing here names
// the library that moves the bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "hier/transport.hpp"

namespace hier {

class Group;

// The speed of one put, as the network's library expects it.
struct NetworkRate {
    double rate = 0;     // bytes per second, each direction; 0: not known
    double latency = 0;  // seconds
};

// All that set-up and messages need to know of a network that is connected. The defaults are those of
// a team without a network.
struct NetworkTraits {
    std::string name = {};           // "UCX tcp on eth0"
    std::string devices = {};        // names, comma-separated
    std::string device_memory = {};  // how device memory travels, for the user; "": not said
    Position position = {};          // of the first device, as far as known
    NetworkRate rate = {};           // of the slowest lane
    int lanes = 1;                   // network devices of this rank
    bool is_tcp = false;             // the CPU moves the bytes
    bool is_rdma = false;
    bool is_in_order = false;     // messages arrive in the order in which they were sent
    bool reaches_devices = true;  // device memory may be put from and to without a bounce buffer
    // Puts in flight that the network allows a rank.
    int max_in_flight = std::numeric_limits<int>::max();
    // Bytes of a call that the network can be sure to register.
    std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
};

class NetworkTransport : public Transport {
public:
    virtual const NetworkTraits& traits() const = 0;
    // Holds on to memory that peers may write into, until they write no more.
    virtual void keep(const std::shared_ptr<const void>& memory) = 0;
    // Registers the buffers of the collective that begins next, which is not eager and has no bounce
    // buffer. False: the network cannot reach them all, and the call needs a bounce buffer.
    virtual bool register_buffers(const Binding& binding) = 0;
    // The same for an eager call in memory of the host. Only memory that is sent from matters: the
    // send buffer, and the receive buffer if this rank passes on other ranks' shards.
    virtual bool register_sources(const Binding& binding, bool is_passed_on) = 0;
    // Has a peer raised a failure?
    virtual bool has_failed() = 0;
    // Between two collectives: the next one exchanges data with these members of the rail. Does not wait,
    // and costs nothing for those that are connected.
    virtual Status connect(std::vector<int> peers) = 0;
    // After stop(), between two collectives, now and then: tells the failure to peers that could not be
    // told before.
    virtual void answer_late() {}
};

// All that a network is made from.
struct NetworkSetup {
    const Group& group;  // the rail's
    const hier_config& config;
    std::span<const PeerRecord> records;  // of the team
    const Topology& topology;
    int rank;  // in the team
    // By member of the rail: may a call exchange anything with it?
    std::vector<bool> is_partner;
    int depth;                // puts in flight
    const gpu::Runtime* gpu;  // null: there is none
};

// Collective over the rail's group. Throws SetupError on all of its ranks or on none.
using MakeNetwork = std::function<std::unique_ptr<NetworkTransport>(const NetworkSetup& setup)>;

}  // namespace hier
