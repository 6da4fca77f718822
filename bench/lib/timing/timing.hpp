// SPDX-License-Identifier: BSD-3-Clause
// Turns the times of all ranks into one sample: in each iteration the slowest rank counts.
#pragma once

#include "statistics.hpp"

#include <mpi.h>

#include <vector>

namespace bench {

struct SlowestRank {
    Statistics statistics;
    double mean_of_ranks;  // over iterations and ranks
};

// Collective. Both are called after a timed loop, because a message inside the loop would disturb
// the next call. `times` has one time of this rank for each iteration.
[[nodiscard]] std::vector<double> slowest_times(MPI_Comm comm, const std::vector<double>& times);
[[nodiscard]] SlowestRank find_slowest(MPI_Comm comm, const std::vector<double>& times);

}  // namespace bench
