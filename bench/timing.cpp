#include "timing.hpp"

namespace bench {

SlowestRank find_slowest(MPI_Comm comm, const std::vector<double>& times)
{
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<double> slowest(times.size());
    std::vector<double> sum(times.size());
    const int count = static_cast<int>(times.size());
    MPI_Allreduce(times.data(), slowest.data(), count, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Allreduce(times.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, comm);
    return {summarize(slowest), summarize(sum).mean / ranks};
}

}  // namespace bench
