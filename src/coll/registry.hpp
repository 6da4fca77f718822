// SPDX-License-Identifier: BSD-3-Clause
// The collectives that this component ships.
#pragma once

#include <span>
#include <vector>

#include "coll/common/collective.hpp"

namespace hier {

// In the order of hier.h's HIER_ALLGATHER, ...
std::span<const MakeCollective> shipped_collectives();

// With which members of its rail does a rank exchange anything, whatever the collective, the route
// and the bytes?
std::vector<bool> rail_partners(const Topology& topology, int rank);

}  // namespace hier
