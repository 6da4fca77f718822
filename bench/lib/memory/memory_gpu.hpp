// SPDX-License-Identifier: BSD-3-Clause
// Memory that the project's own GPU runtime modules give.
#pragma once

#include "memory.hpp"

#include <mpi.h>

#include <string>

namespace bench {

struct Placement {
    Memories memories;
    std::string gpu_runtime;  // its name; empty: no rank needs one
    std::string failure;      // the same on all ranks
};

// Collective. GPUs are dealt out to the ranks of each host in turn.
[[nodiscard]] Placement place_buffers(MPI_Comm comm, const Options& options);

}  // namespace bench
