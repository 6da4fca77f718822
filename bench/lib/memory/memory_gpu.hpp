// SPDX-License-Identifier: BSD-3-Clause
// GPU memory, allocated by the project's own GPU runtime modules.
#pragma once

#include "memory.hpp"

#include <mpi.h>

#include <string>

namespace bench {

struct Placement {
    Memories memories;
    std::string gpu_runtime;  // name and version; empty: no rank needs a GPU
    std::string failure;      // the same on all ranks
};

// Collective. The ranks of a host take its GPUs in turn.
[[nodiscard]] Placement place_buffers(MPI_Comm comm, const Options& options);

}  // namespace bench
