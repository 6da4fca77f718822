// SPDX-License-Identifier: BSD-3-Clause
// One verdict for all ranks.
#pragma once

#include <mpi.h>

#include <string>

namespace bench {

// Collective. The text of the lowest rank whose text is not empty, on every rank; empty if all are.
[[nodiscard]] std::string agree_on_failure(MPI_Comm comm, const std::string& own);

}  // namespace bench
