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

// The names that UCX gets. An empty string leaves UCX's own choice (and the user's UCX_* variables)
// alone.
struct NetworkChoice {
    std::string devices;
    std::string transports;
    std::string memory = {};  // transports that UCX needs to know device memory; empty: none
    int connection = 0;       // of several over one interface
    bool operator==(const NetworkChoice&) const = default;
};

// Does it write by RDMA, as its transports do?
bool writes_by_rdma(const NetworkDevice& device);
// Do all its transports, of which there are some, write by RDMA?
bool is_rdma(const NetworkChoice& choice);
// Does TCP carry all?
bool is_tcp(const NetworkChoice& choice);
// Are they those that choose_network() and settle_transports() take for RDMA: reliable connections, and dynamic
// ones (DC) where the device has them?
bool is_reliable_rdma(const NetworkChoice& choice);
// Dynamic connections alone?
bool is_dynamic_rdma(const NetworkChoice& choice);
// May it be dynamic connections alone?
bool may_be_dynamic(const NetworkChoice& choice);

// With more members a rail takes dynamic connections, if all members can. A reliable connection is a queue
// pair for each peer, and a network device keeps the state of some hundreds of them at hand. 8 ranks of a node
// that share one device have 512 with so many peers.
inline constexpr std::size_t max_reliable_members = 64;

// The transports of a lane, equal on all members of its rail, for a reliable connection does not reach a
// member that has dynamic ones alone. `all_may`: may_be_dynamic() on each member.
NetworkChoice settle_transports(NetworkChoice choice, std::size_t members, bool all_may);

// In place of a list of transports: as "auto", but never TCP.
inline constexpr const char* no_tcp = "^tcp";

// The settings: "auto" or a list of UCX's names, and the devices of a rank at most.
struct NetworkSettings {
    std::string devices;
    std::string transports;  // or no_tcp
    int max_devices = 1;
};

// Pure. One choice for each device of the self-th of `ranks`, which share this host; never none.
//
// - A list with '^' in front means all devices except these. Throws SetupError where none is left.
// - Without RDMA and with no_tcp there is no network. Throws SetupError.
// - RDMA goes before TCP. The candidates are the devices of the list, or those of the one kind that moves
//   most in all. assign_nics() gives the rank its share of them.
// - TCP with a list: assign_nics() again, among the fastest interfaces of the list. An interface that is
//   named twice is two connections.
// - TCP without a list: `preferred_interface` (that of the default route, say). The loopback is taken only
//   where there is nothing else.
std::vector<NetworkChoice> choose_network(std::vector<NetworkDevice> found,
                                          NetworkSettings settings,
                                          const std::string& preferred_interface,
                                          std::span<const Position> ranks, int self);

}  // namespace hier
