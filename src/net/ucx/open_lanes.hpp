// SPDX-License-Identifier: BSD-3-Clause
// How the members of a rail open their lanes together.
#pragma once

#include <vector>

#include "net/devices/network_choice.hpp"
#include "net/network_transport.hpp"
#include "net/ucx/lane/retired_lanes.hpp"

namespace hier {

// Collective over the rail's group. `choices` is not empty. As many of them become lanes as every member
// has and can connect; at least one. Throws SetupError on all ranks or on none.
std::vector<LanePointer> open_lanes(const NetworkSetup& setup,
                                    const std::vector<NetworkChoice>& choices);

// The traits of all lanes together. There is at least one lane. The position is left out.
NetworkTraits traits_of(const std::vector<LanePointer>& lanes);

}  // namespace hier
