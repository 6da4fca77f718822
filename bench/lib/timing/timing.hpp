// SPDX-License-Identifier: BSD-3-Clause
// The times of all ranks as one sample: in each iteration the slowest rank counts.
#pragma once

#include "statistics.hpp"

#include <mpi.h>

#include <vector>

namespace bench {

struct SlowestRank {
    Statistics statistics;
    double mean_of_ranks;  // over iterations and ranks
};

// Collective, after a timed loop: a message inside it would disturb the next call. `times` are this
// rank's, one an iteration.
[[nodiscard]] std::vector<double> slowest_times(MPI_Comm comm, const std::vector<double>& times);
[[nodiscard]] SlowestRank find_slowest(MPI_Comm comm, const std::vector<double>& times);

}  // namespace bench
