// SPDX-License-Identifier: BSD-3-Clause
// One verdict for all ranks.
#pragma once

#include <mpi.h>

#include <string>

namespace bench {

// Collective. Every rank gets the text of the lowest rank that has one. Empty: no rank has a text.
[[nodiscard]] std::string agree_on_failure(MPI_Comm comm, const std::string& own);

}  // namespace bench
