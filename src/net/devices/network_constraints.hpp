// SPDX-License-Identifier: BSD-3-Clause
// What has been said of the network to UCX and to Open MPI, and counts where nothing is said to us.
#pragma once

#include <string>
#include <vector>

#include "net/devices/network_choice.hpp"

namespace hier {

// Pure. UCX_NET_DEVICES, nullptr where it is not set, in place of an "auto", its ranges ("eth[0-3]", ours,
// too) in full. Where nothing at all is said to us, tcp if UCX_TLS has that and leaves out RDMA's
// reliable transports (rc, dc); of others we could not make use.
NetworkSettings with_variables_of_ucx(NetworkSettings settings, const char* net_devices,
                                      const char* tls);

// Pure. What "may be faster" than the TCP that we would take by ourselves, a sentence without its end;
// "": nothing.
// `messages`: the name of Open MPI's pml.
std::string why_not_tcp(const std::vector<NetworkDevice>& found, const std::string& messages);

}  // namespace hier
