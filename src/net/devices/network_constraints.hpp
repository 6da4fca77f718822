// SPDX-License-Identifier: BSD-3-Clause
// Settings of the network that UCX and Open MPI have. They count where the user has told hier nothing.
#pragma once

#include <string>
#include <vector>

#include "net/devices/network_choice.hpp"

namespace hier {

// Pure. Replaces "auto" by the settings of UCX. nullptr: the variable is not set.
//
// - UCX_NET_DEVICES takes the place of an "auto" list of devices. Ranges ("eth[0-3]") are written in full,
//   in our own list, too.
// - If both of ours are "auto": tcp, if UCX_TLS has tcp and leaves out the reliable RDMA transports (rc,
//   dc). Hier has no use for other transports. No TCP, if UCX_TLS excludes it.
NetworkSettings with_variables_of_ucx(NetworkSettings settings, const char* net_devices,
                                      const char* tls);

// Pure. Why Open MPI may be faster than the TCP that "auto" would take: a sentence without its end, or "".
// `messages`: the name of Open MPI's pml.
std::string why_not_tcp(const std::vector<NetworkDevice>& found, const std::string& messages);

}  // namespace hier
