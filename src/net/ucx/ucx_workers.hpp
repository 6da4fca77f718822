// SPDX-License-Identifier: BSD-3-Clause
// All workers of the process, one for each network choice.
#pragma once

#include <memory>

#include "net/ucx/ucx_worker.hpp"

namespace hier {

class UcxWorkers {
public:
    // The process's worker for this choice. Throws SetupError.
    static std::shared_ptr<UcxWorker> get(const NetworkChoice& choice);
    // Progresses each once, unless another thread is at it: between collectives, for the acknowledgements
    // of what was put.
    static void progress();
    // From now on peers may be gone. No worker is progressed between collectives any more, and no goodbye
    // is sent. (UCX ends the process when it cannot answer a put whose sender has left.)
    static void quiesce();
    static bool are_quiet();
    // Gives back what a worker holds that nobody has and that has never connected.
    static void drop_unused(const NetworkChoice& choice);
    // Forgets all workers; those that a team still uses end with it.
    static void finalize();
};

}  // namespace hier
