// SPDX-License-Identifier: BSD-3-Clause
// All sizes, one after the other, with a row each.
#pragma once

#include "bench/lib/options/options.hpp"
#include "bench/lib/output/report.hpp"
#include "bench/lib/timing/measure.hpp"

#include <mpi.h>

namespace bench {

// Collective. The exit status of the program; rank 0 has told why it is not 0.
[[nodiscard]] int measure_sizes(MPI_Comm comm, Program program, const Options& options,
                                Bench& bench, const Report& report);

}  // namespace bench
