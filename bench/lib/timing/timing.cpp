// SPDX-License-Identifier: BSD-3-Clause
#include "timing.hpp"

namespace bench {

std::vector<double> slowest_times(MPI_Comm comm, const std::vector<double>& times)
{
    std::vector<double> slowest(times.size());
    MPI_Allreduce(times.data(), slowest.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX,
                  comm);
    return slowest;
}

SlowestRank find_slowest(MPI_Comm comm, const std::vector<double>& times)
{
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<double> sum(times.size());
    MPI_Allreduce(times.data(), sum.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_SUM,
                  comm);
    return {summarize(slowest_times(comm, times)), summarize(sum).mean / ranks};
}

}  // namespace bench
