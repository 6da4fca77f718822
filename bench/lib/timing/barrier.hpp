// SPDX-License-Identifier: BSD-3-Clause
// A barrier of plain messages, the same whichever module serves the call that is timed. HAN, for one,
// serves MPI_Barrier, too, and lets ranks that share cores go closer together than others do. So the
// calls behind it would look quicker.
#pragma once

#include <mpi.h>

namespace bench {

class Barrier {
public:
    // Collective, and so is the end of a Barrier.
    explicit Barrier(MPI_Comm comm);
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;
    ~Barrier();

    // The ranks of each node, then one rank of each node, then the ranks of each node again.
    void operator()() const;

private:
    MPI_Comm node_ = MPI_COMM_NULL;
    MPI_Comm leaders_ = MPI_COMM_NULL;  // one rank of each node
    int nodes_ = 1;
};

}  // namespace bench
