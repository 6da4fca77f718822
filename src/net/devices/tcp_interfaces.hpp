// SPDX-License-Identifier: BSD-3-Clause
// Which of a host's interfaces TCP is to use.
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <vector>

namespace hier {

struct Interface {
    std::string name;
    std::uint32_t address;    // IPv4, in the host's byte order
    bool has_device = false;  // no bridge, no tunnel
};

// Those with an IPv4 address.
std::vector<Interface> ip_interfaces();

// The lists that the user has given to Open MPI's own TCP: names or networks (10.1.0.0/16), separated by
// commas.
struct InterfaceLists {
    std::string include;
    std::string exclude;
};

// Pure. The first of these that there is, or "". The last three are not taken if they are excluded:
//   1. the first interface that is included
//   2. `routed`, that of the default route
//   3. one that has a device
//   4. any but the loopback
std::string preferred_interface(const InterfaceLists& lists, const std::string& routed,
                                std::span<const Interface> interfaces);

// The interface of the kernel's default route, or "".
std::string default_route_interface();
// Pure. The same, from the lines of /proc/net/route.
std::string interface_of(std::istream& routes);

}  // namespace hier
