// SPDX-License-Identifier: BSD-3-Clause
// The networks of the process, over all teams. Local; nothing here waits.
#pragma once

#include <memory>
#include <string>

#include "net/network_transport.hpp"

namespace hier {

// The network that this component ships: a MakeNetwork.
std::unique_ptr<NetworkTransport> make_network(const NetworkSetup& setup);

// The library that moves the bytes, with its version: "UCX 1.13.1".
std::string network_library();

// The network's library takes handlers of signals when it is loaded. They go back to the application.
void give_signals_back();

// Moves all connections once, except those that another thread moves. A peer may need an answer while no
// call of this process runs.
void progress_networks();
// Frees the memory that teams have left behind, once no peer may write there any more.
void sweep_networks();

// From now on peers may be gone: nothing is sent to them any more but by calls.
void quiesce_networks();
bool networks_are_quiet();

// When the last team is gone: closes all connections.
void finalize_networks();

}  // namespace hier
