// SPDX-License-Identifier: BSD-3-Clause
#include "run.hpp"

#include "agree.hpp"
#include "program.hpp"

namespace bench {

int measure_sizes(MPI_Comm comm, Program program, const Options& options, Bench& bench,
                  const Report& report)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    for (const std::size_t size : options.sizes) {
        const Measurement measurement = bench.measure(size);
        if (!measurement.failure.empty()) {
            return complain(rank, program, measurement.usable ? exit_wrong : exit_usage,
                            measurement.failure);
        }
        const std::string failure =
            agree_on_failure(comm, rank == 0 ? report.add(measurement) : "");
        if (!failure.empty()) {
            return complain(rank, program, exit_usage, failure);
        }
    }
    return 0;
}

}  // namespace bench
