// Which of a host's interfaces TCP is to use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hier {

struct Interface {
    std::string name;
    std::uint32_t address;  // IPv4, in the host's byte order
};

// Those with an IPv4 address.
std::vector<Interface> ip_interfaces();

// Pure. The first interface that the list, separated by commas, names or has the network of
// (10.1.0.0/16), or "".
std::string first_listed(const std::string& list, std::span<const Interface> interfaces);

// The interface of the kernel's default route, or "".
std::string default_route_interface();

}  // namespace hier
