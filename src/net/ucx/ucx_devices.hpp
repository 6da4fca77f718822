// SPDX-License-Identifier: BSD-3-Clause
// The network devices and the transports that UCX finds on this machine.
#pragma once

#include <string>
#include <vector>

#include "net/devices/network_choice.hpp"

namespace hier {

// The network devices that UCX finds here. Throws SetupError.
std::vector<NetworkDevice> network_devices();

// UCX's transports of device memory that are there, comma-separated: without one of them in its
// list, a context knows the host's memory only. Throws SetupError.
std::string memory_transports();

}  // namespace hier
