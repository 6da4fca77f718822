// SPDX-License-Identifier: BSD-3-Clause
// Measures all sizes, one after the other, and writes a row for each.
#pragma once

#include "bench/lib/options/options.hpp"
#include "bench/lib/output/report.hpp"
#include "bench/lib/timing/measure.hpp"

#include <mpi.h>

namespace bench {

// Collective. Returns the exit status of the program. If it is not 0, rank 0 has said why.
[[nodiscard]] int measure_sizes(MPI_Comm comm, Program program, const Options& options,
                                Bench& bench, const Report& report);

}  // namespace bench
