// SPDX-License-Identifier: BSD-3-Clause
// The persistent collectives under one name. They are part of MPI 4 and of Open MPI 5. Open MPI 4.1 has them as an
// extension, which may be missing.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HIER_TEST_PERSISTENT(name) MPI_##name
#elif __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define HIER_TEST_PERSISTENT(name) MPIX_##name
#endif
#endif

namespace hier_test {

#ifdef HIER_TEST_PERSISTENT

inline constexpr bool has_persistent = true;

inline int allgather_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                          int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                          MPI_Request* request)
{
    return HIER_TEST_PERSISTENT(Allgather_init)(send, send_count, send_type, receive, receive_count,
                                                receive_type, comm, MPI_INFO_NULL, request);
}

inline int allgatherv_init(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                           const int* counts, const int* displacements, MPI_Datatype receive_type,
                           MPI_Comm comm, MPI_Request* request)
{
    return HIER_TEST_PERSISTENT(Allgatherv_init)(send, send_count, send_type, receive, counts,
                                                 displacements, receive_type, comm, MPI_INFO_NULL,
                                                 request);
}

#else

inline constexpr bool has_persistent = false;

inline int allgather_init(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm,
                          MPI_Request*)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

inline int allgatherv_init(const void*, int, MPI_Datatype, void*, const int*, const int*,
                           MPI_Datatype, MPI_Comm, MPI_Request*)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

#endif

}  // namespace hier_test
