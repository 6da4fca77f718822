// SPDX-License-Identifier: BSD-3-Clause
// The collectives that this component ships.
#pragma once

#include <span>
#include <vector>

#include "coll/common/collective.hpp"

namespace hier {

// In the order of the enum of HIER_ALLGATHER in hier.h.
std::span<const MakeCollective> shipped_collectives();

// The members of its rail with which a rank ever exchanges anything, whatever the collective, the
// route and the bytes.
std::vector<bool> rail_partners(const Topology& topology, int rank);

}  // namespace hier
