// SPDX-License-Identifier: BSD-3-Clause
// A peer that makes another call than this rank.
#pragma once

#include <cstdint>

#include "hier/status.hpp"

namespace hier {

// Both are CallShapes. `level` and `peer` name the peer: "node", "rail". Logs what differs, and returns
// mismatch.
Status refuse_shape(std::uint64_t ours, std::uint64_t theirs, const char* level, int peer);

}  // namespace hier
