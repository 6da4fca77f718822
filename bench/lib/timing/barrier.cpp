// SPDX-License-Identifier: BSD-3-Clause
#include "barrier.hpp"

namespace bench {
namespace {

// The dissemination barrier (Hensgen, Finkel and Manber 1988): in each round a rank tells the one that
// is twice as far away as in the round before.
void disseminate(MPI_Comm comm)
{
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int distance = 1; distance < ranks; distance *= 2)
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, (rank + distance) % ranks, 0, nullptr, 0, MPI_BYTE,
                     (rank - distance + ranks) % ranks, 0, comm, MPI_STATUS_IGNORE);
}

}  // namespace

Barrier::Barrier(MPI_Comm comm)
{
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_);
    int node_rank = 0;
    MPI_Comm_rank(node_, &node_rank);
    MPI_Comm_split(comm, node_rank == 0 ? 0 : MPI_UNDEFINED, 0, &leaders_);
    if (leaders_ != MPI_COMM_NULL) MPI_Comm_size(leaders_, &nodes_);
    MPI_Bcast(&nodes_, 1, MPI_INT, 0, node_);
}

Barrier::~Barrier()
{
    MPI_Comm_free(&node_);
    if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
}

void Barrier::operator()() const
{
    disseminate(node_);
    if (nodes_ == 1) return;
    if (leaders_ != MPI_COMM_NULL) disseminate(leaders_);
    disseminate(node_);
}

}  // namespace bench
