// SPDX-License-Identifier: BSD-3-Clause
// In place of a network: its ranks exchange addresses as long as those of UCX, and nobody connects.
#pragma once

#include "net/network_transport.hpp"

namespace bench {

// A hier::MakeNetwork. No call can run on it.
std::unique_ptr<hier::NetworkTransport> make_stand_in(const hier::NetworkSetup& setup);

}  // namespace bench
