// SPDX-License-Identifier: BSD-3-Clause
// The number of a rank on its host. It decides which of the host's GPUs the rank takes.
#pragma once

#include <mpi.h>

namespace bench {

// Collective.
[[nodiscard]] inline int local_rank(MPI_Comm comm)
{
    MPI_Comm host = MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_free(&host);
    return rank;
}

}  // namespace bench
