// SPDX-License-Identifier: BSD-3-Clause
// Which network devices and which transports a rank's rail uses. The names are those of UCX.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hier/topology.hpp"

namespace hier {

struct NetworkDevice {
    std::string transport;  // as UCX names it: "tcp", "rc_mlx5", ...
    std::string name;       // "eth0", "mlx5_0:1", ...
    Position position{};    // of RDMA devices
    std::string link = {};  // topology/locality.hpp
};

// What to give to UCX; an empty string leaves UCX's own choice (and the user's UCX_* variables)
// alone.
struct NetworkChoice {
    std::string devices;
    std::string transports;
    std::string memory = {};  // what else UCX needs to know device memory; empty: it need not
    int connection = 0;       // of several over one interface
    bool operator==(const NetworkChoice&) const = default;
};

// Does it write by RDMA, as its transports do?
bool writes_by_rdma(const NetworkDevice& device);
// Do all its transports, of which there are some, write by RDMA?
bool is_rdma(const NetworkChoice& choice);
// Does TCP carry all?
bool is_tcp(const NetworkChoice& choice);
// Are they those that choose_network() takes for RDMA: reliable connections, and dynamic ones (DC)
// where the device has them?
bool is_reliable_rdma(const NetworkChoice& choice);

// The settings: "auto" or a list of UCX's names, and the devices of a rank at most.
struct NetworkSettings {
    std::string devices;
    std::string transports;
    int most = 1;
};

// Pure. One choice for each device of the self-th of `ranks`, which share this host; never none. A list
// with '^' in front: all but these; throws SetupError where that is none. `preferred_interface` is
// that of the default route, say, if any. RDMA before TCP; of those RDMA devices of one kind that move
// most in all, or of those of the list, what assign_nics() gives the rank; likewise of a list's
// interfaces, of which only the fastest count and one that is named twice is two connections; without
// a list the preferred one, and loopback only where there is nothing else.
std::vector<NetworkChoice> choose_network(std::vector<NetworkDevice> found,
                                          NetworkSettings settings,
                                          const std::string& preferred_interface,
                                          std::span<const Position> ranks, int self);

}  // namespace hier
