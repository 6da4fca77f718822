// SPDX-License-Identifier: BSD-3-Clause
#include "agree.hpp"

namespace bench {

std::string agree_on_failure(MPI_Comm comm, const std::string& own)
{
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int first = own.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == ranks) {
        return "";
    }
    int length = static_cast<int>(own.size());
    MPI_Bcast(&length, 1, MPI_INT, first, comm);
    std::string text = own;
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, first, comm);
    return text;
}

}  // namespace bench
