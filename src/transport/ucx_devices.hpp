// Which network device and which UCX transports a rank's rail uses.
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
};

// What to give to UCX; an empty string leaves UCX's own choice (and the user's UCX_* variables)
// alone.
struct NetworkChoice {
    std::string devices;
    std::string transports;
    std::string memory = {};  // what else UCX needs to know device memory; empty: it need not
    bool operator==(const NetworkChoice&) const = default;
};

// Of one device.
struct NetworkRate {
    double rate = 0;     // bytes per second, each direction; 0: not known
    double latency = 0;  // seconds
};

// The network devices that UCX finds here. Throws SetupError.
std::vector<NetworkDevice> network_devices();

// Do all its transports, of which there are some, write by RDMA?
bool is_rdma(const NetworkChoice& choice);
// UCX's transports of device memory that are there, comma-separated: without one of them in its
// list, a context knows the host's memory only. Throws SetupError.
std::string memory_transports();

// Pure. `devices` and `transports` are the settings, "auto" or a list of UCX's names;
// `default_interface` is the interface of the default route, if any. RDMA before TCP; of several
// RDMA devices, or those of the list, the one that assign_nics() gives to the self-th of `ranks`,
// which share this host; of several interfaces the default route's; loopback only where there is
// nothing else.
NetworkChoice choose_network(const std::vector<NetworkDevice>& found, const std::string& devices,
                             const std::string& transports, const std::string& default_interface,
                             std::span<const Position> ranks, int self);

// The interface of the kernel's default route, or "".
std::string default_route_interface();

}  // namespace hier
