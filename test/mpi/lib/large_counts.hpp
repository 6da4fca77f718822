// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI 4 whose counts and displacements have 64 bits. configure looks for them.
#pragma once

#include "observer.hpp"

#include <vector>

namespace hier_test {

// The arguments of an allgather of either form. MPI_Allgather takes the first count. The lists must live as long as a call
// that is active.
struct LargeArguments {
    const void* send;
    MPI_Count send_count;
    MPI_Datatype send_type;
    void* receive;
    std::vector<MPI_Count> counts;
    std::vector<MPI_Aint> displacements;  // in extents
    MPI_Datatype receive_type;
};

#ifdef HIER_HAS_LARGE_COUNTS

inline constexpr bool has_large_counts = true;

inline int call_allgather_c(Manner manner, const LargeArguments& a, MPI_Comm comm,
                            MPI_Request* request)
{
    switch (manner) {
    case Manner::blocking:
        return MPI_Allgather_c(a.send, a.send_count, a.send_type, a.receive, a.counts[0],
                               a.receive_type, comm);
    case Manner::nonblocking:
        return MPI_Iallgather_c(a.send, a.send_count, a.send_type, a.receive, a.counts[0],
                                a.receive_type, comm, request);
    case Manner::persistent:
        return MPI_Allgather_init_c(a.send, a.send_count, a.send_type, a.receive, a.counts[0],
                                    a.receive_type, comm, MPI_INFO_NULL, request);
    }
    return MPI_ERR_OTHER;
}

inline int call_allgatherv_c(Manner manner, const LargeArguments& a, MPI_Comm comm,
                             MPI_Request* request)
{
    const MPI_Count* const counts = a.counts.data();
    const MPI_Aint* const displacements = a.displacements.data();
    switch (manner) {
    case Manner::blocking:
        return MPI_Allgatherv_c(a.send, a.send_count, a.send_type, a.receive, counts, displacements,
                                a.receive_type, comm);
    case Manner::nonblocking:
        return MPI_Iallgatherv_c(a.send, a.send_count, a.send_type, a.receive, counts,
                                 displacements, a.receive_type, comm, request);
    case Manner::persistent:
        return MPI_Allgatherv_init_c(a.send, a.send_count, a.send_type, a.receive, counts,
                                     displacements, a.receive_type, comm, MPI_INFO_NULL, request);
    }
    return MPI_ERR_OTHER;
}

#else

inline constexpr bool has_large_counts = false;

inline int call_allgather_c(Manner, const LargeArguments&, MPI_Comm, MPI_Request*)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

inline int call_allgatherv_c(Manner, const LargeArguments&, MPI_Comm, MPI_Request*)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

#endif

// `request` is not used by a blocking call.
inline int call_large(CountedCollective collective, Manner manner, const LargeArguments& arguments,
                      MPI_Comm comm, MPI_Request* request)
{
    return collective == CountedCollective::allgather
               ? call_allgather_c(manner, arguments, comm, request)
               : call_allgatherv_c(manner, arguments, comm, request);
}

}  // namespace hier_test
