// What has been said of the network to UCX and to Open MPI, and counts where nothing is said to us.
#pragma once

#include <string>
#include <vector>

#include "transport/ucx_devices.hpp"

namespace hier {

// Pure. UCX_NET_DEVICES and UCX_TLS, nullptr where they are not set, in place of an "auto". Of
// transports that leave RDMA's reliable ones (rc, dc) out, tcp if it is among them, else themselves;
// a list without any network says nothing of one.
NetworkSettings with_variables_of_ucx(NetworkSettings settings, const char* net_devices,
                                      const char* tls);

// Pure. Why TCP is the wrong one to take by ourselves, in words; "": it is not. `messages`: the name
// of Open MPI's pml.
std::string why_not_tcp(const std::vector<NetworkDevice>& found, const std::string& messages);

}  // namespace hier
