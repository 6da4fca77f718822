// SPDX-License-Identifier: BSD-3-Clause
// What the process has of its networks, over all teams. Local; nothing here waits.
#pragma once

#include <memory>
#include <string>

#include "net/network_transport.hpp"

namespace hier {

// The network that this component ships: a MakeNetwork.
std::unique_ptr<NetworkTransport> make_network(const NetworkSetup& setup);

// The library that moves the bytes, with its version: "UCX 1.13.1".
std::string network_library();

// When this library has been loaded, and the network's with it: handlers of signals that the
// network's library took go back to the application.
void give_signals_back();

// Moves all connections once, but for those that another thread moves. For times in which no call
// does: a peer may need an answer.
void progress_networks();
// Frees what teams have left behind, as far as no peer may write there any more.
void sweep_networks();

// From now on peers may be gone: nothing is sent to them any more but by calls.
void quiesce_networks();
bool networks_are_quiet();

// When the last team is gone: closes all connections.
void finalize_networks();

}  // namespace hier
