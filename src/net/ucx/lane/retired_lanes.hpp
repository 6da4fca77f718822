// SPDX-License-Identifier: BSD-3-Clause
// Lanes whose team is gone. A peer may still write to their boards: a repeated last signal, a heartbeat,
// a failure. If a board were freed early, the network would write into memory that belongs to something
// else by then.
//
// A retired lane sends every peer a goodbye, its last word on that lane. It is destroyed when all peers have
// sent theirs. Lanes that are left at the end of the process go with the workers.
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
