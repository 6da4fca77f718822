// SPDX-License-Identifier: BSD-3-Clause
// Lanes whose team is gone, but to whose boards a peer may still write: a repeated last signal, a
// sign of life, a failure. Freeing a board early would let the network write into memory that is
// somebody else's by then.
//
// A retired lane sends every peer a goodbye, its last word on that lane, and is destroyed when it
// has had theirs; what is left at the end of the process goes with the workers.
#pragma once

#include <memory>

namespace hier {

class UcxLane;

struct RetireLane {
    void operator()(UcxLane* lane) const;
};

// Retires when it is destroyed, also by a set-up that fails half-way.
using LanePointer = std::unique_ptr<UcxLane, RetireLane>;

// Lets retired lanes go on; destroys those that are done. Local, does not wait.
void sweep_retired_lanes();
// At the end of the process, when no peer sends any more.
void drop_retired_lanes();

}  // namespace hier
