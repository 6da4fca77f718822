// SPDX-License-Identifier: BSD-3-Clause
// A barrier of plain messages, the same whichever module serves the call that is timed. HAN, for one,
// serves MPI_Barrier, too, and lets ranks that share cores go closer together than others do. So the
// calls behind it would look quicker.
#pragma once

#include <mpi.h>

#include <vector>

namespace bench {

class Barrier {
public:
    // Collective. Makes no communicator, because Open MPI would call the allgather for it.
    explicit Barrier(MPI_Comm comm);

    // The ranks of each node, then the first rank of each node, then the ranks of each node again.
    void operator()() const;

private:
    void disseminate(const std::vector<int>& ranks) const;

    MPI_Comm comm_;
    int rank_ = 0;
    std::vector<int> node_;     // the ranks of this rank's node
    std::vector<int> leaders_;  // the first rank of each node
};

}  // namespace bench
