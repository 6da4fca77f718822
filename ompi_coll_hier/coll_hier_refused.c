/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking, persistent and neighbourhood collectives: without an Open MPI that knows GPUs, a call with device
 * memory ends with an error instead of a crash. */
#include "coll_hier.h"
#include "coll_hier_others.h"

#include <string.h>

#include "opal/util/output.h"

#if HIER_MODULE_INSTALLS
mca_coll_hier_function_t mca_coll_hier_refusal(int id)
{
    (void)id;
    return NULL;
}
#else

typedef struct ompi_datatype_t* type_t;
typedef struct ompi_op_t* op_t;
typedef struct ompi_communicator_t* comm_t;
typedef struct ompi_request_t request_t;
typedef struct ompi_info_t info_t;

/* Only the memory at the buffer's address is looked at, so MPI_BOTTOM is not seen. */
static bool is_on_device(const void* buffer)
{
    hier_memory memory = {.is_reachable = 1};
    hier_memory* const memories[] = {&memory};
    if (NULL != buffer && MPI_IN_PLACE != buffer) {
        hier_memory_inspect(1, &buffer, memories);
    }
    return !memory.is_reachable;
}

static bool is_refused(const void* send, const void* receive, comm_t comm, int id)
{
    if (!is_on_device(send) && !is_on_device(receive)) {
        return false;
    }
    /* The blocking neighbourhood calls are refused, too. */
    const char* const name = mca_coll_hier_name_of_other(id);
    const char* const instead =
        NULL != strstr(name, "eighbor_") ? "memory of the host" : "the blocking call";
    opal_output(0,
                "coll:hier: %s on %s: a buffer is device memory, and this Open MPI knows no GPUs. "
                "Use %s, or Open MPI 5 or 6 built with CUDA or ROCm",
                name, comm->c_name, instead);
    return true;
}

/* DEFINE(collective, family, tail): a function for the collective. A family is the parameters up to the
 * communicator, a tail those behind it. */
#define DEFINE(collective, FAMILY, TAIL)                                                           \
    static int refused_##collective(FAMILY##_PARAMETERS,                                           \
                                    TAIL##_PARAMETERS mca_coll_base_module_t* module)              \
    {                                                                                              \
        const mca_coll_hier_previous_t* previous =                                                 \
            &((mca_coll_hier_module_t*)module)->others[MCA_COLL_HIER_##collective];                \
        if (is_refused(FAMILY##_SEND, FAMILY##_RECEIVE, comm, MCA_COLL_HIER_##collective)) {       \
            return MPI_ERR_UNSUPPORTED_OPERATION;                                                  \
        }                                                                                          \
        int (*function)(FAMILY##_PARAMETERS, TAIL##_PARAMETERS mca_coll_base_module_t*) =          \
            (int (*)(FAMILY##_PARAMETERS,                                                          \
                     TAIL##_PARAMETERS mca_coll_base_module_t*))previous->function;                \
        return function(FAMILY##_ARGUMENTS, TAIL##_ARGUMENTS previous->module);                    \
    }

#define PLAIN_PARAMETERS
#define PLAIN_ARGUMENTS
#define STARTED_PARAMETERS request_t **request,
#define STARTED_ARGUMENTS request,
#define PERSISTENT_PARAMETERS info_t *info, request_t **request,
#define PERSISTENT_ARGUMENTS info, request,

/* A buffer that means nothing to other ranks. */
#define AT_ROOT(buffer) (ompi_comm_rank(comm) == root ? (buffer) : NULL)
/* What a family has as parameters and arguments, and the buffers that mean something. */
#define EQUAL_PARAMETERS                                                                           \
    const void *send, int send_count, type_t send_type, void *receive, int count, type_t type,     \
        comm_t comm
#define EQUAL_ARGUMENTS send, send_count, send_type, receive, count, type, comm
#define EQUAL_SEND 0 < send_count ? send : NULL
#define EQUAL_RECEIVE 0 < count ? receive : NULL
#define ALLGATHERV_PARAMETERS                                                                      \
    const void *send, int send_count, type_t send_type, void *receive, const int *counts,          \
        const int *at, type_t type, comm_t comm
#define ALLGATHERV_ARGUMENTS send, send_count, send_type, receive, counts, at, type, comm
#define ALLGATHERV_SEND 0 < send_count ? send : NULL
#define ALLGATHERV_RECEIVE receive
#define ALLTOALLV_PARAMETERS                                                                       \
    const void *send, const int *send_counts, const int *send_at, type_t send_type, void *receive, \
        const int *counts, const int *at, type_t type, comm_t comm
#define ALLTOALLV_ARGUMENTS send, send_counts, send_at, send_type, receive, counts, at, type, comm
#define ALLTOALLV_SEND send
#define ALLTOALLV_RECEIVE receive
#define ALLTOALLW_PARAMETERS                                                                       \
    const void *send, const int *send_counts, const int *send_at, const type_t *send_types,        \
        void *receive, const int *counts, const int *at, const type_t *types, comm_t comm
#define ALLTOALLW_ARGUMENTS send, send_counts, send_at, send_types, receive, counts, at, types, comm
#define ALLTOALLW_SEND send
#define ALLTOALLW_RECEIVE receive
#define NEIGHBOR_W_PARAMETERS                                                                      \
    const void *send, const int *send_counts, const MPI_Aint *send_at, const type_t *send_types,   \
        void *receive, const int *counts, const MPI_Aint *at, const type_t *types, comm_t comm
#define NEIGHBOR_W_ARGUMENTS                                                                       \
    send, send_counts, send_at, send_types, receive, counts, at, types, comm
#define NEIGHBOR_W_SEND send
#define NEIGHBOR_W_RECEIVE receive
#define BCAST_PARAMETERS void *receive, int count, type_t type, int root, comm_t comm
#define BCAST_ARGUMENTS receive, count, type, root, comm
#define BCAST_SEND NULL
#define BCAST_RECEIVE 0 < count ? receive : NULL
#define REDUCTION_PARAMETERS                                                                       \
    const void *send, void *receive, int count, type_t type, op_t op, comm_t comm
#define REDUCTION_ARGUMENTS send, receive, count, type, op, comm
#define REDUCTION_SEND 0 < count ? send : NULL
#define REDUCTION_RECEIVE 0 < count ? receive : NULL
#define REDUCE_PARAMETERS                                                                          \
    const void *send, void *receive, int count, type_t type, op_t op, int root, comm_t comm
#define REDUCE_ARGUMENTS send, receive, count, type, op, root, comm
#define REDUCE_SEND 0 < count ? send : NULL
#define REDUCE_RECEIVE AT_ROOT(0 < count ? receive : NULL)
#define REDUCE_SCATTER_PARAMETERS                                                                  \
    const void *send, void *receive, const int *counts, type_t type, op_t op, comm_t comm
#define REDUCE_SCATTER_ARGUMENTS send, receive, counts, type, op, comm
#define REDUCE_SCATTER_SEND send
#define REDUCE_SCATTER_RECEIVE receive
#define GATHERV_PARAMETERS                                                                         \
    const void *send, int send_count, type_t send_type, void *receive, const int *counts,          \
        const int *at, type_t type, int root, comm_t comm
#define GATHERV_ARGUMENTS send, send_count, send_type, receive, counts, at, type, root, comm
#define GATHERV_SEND 0 < send_count ? send : NULL
#define GATHERV_RECEIVE AT_ROOT(receive)
#define SCATTERV_PARAMETERS                                                                        \
    const void *send, const int *counts, const int *at, type_t send_type, void *receive,           \
        int count, type_t type, int root, comm_t comm
#define SCATTERV_ARGUMENTS send, counts, at, send_type, receive, count, type, root, comm
#define SCATTERV_SEND AT_ROOT(send)
#define SCATTERV_RECEIVE 0 < count ? receive : NULL
#define GATHER_PARAMETERS                                                                          \
    const void *send, int send_count, type_t send_type, void *receive, int count, type_t type,     \
        int root, comm_t comm
#define GATHER_ARGUMENTS send, send_count, send_type, receive, count, type, root, comm
#define GATHER_SEND 0 < send_count ? send : NULL
#define GATHER_RECEIVE AT_ROOT(0 < count ? receive : NULL)
#define SCATTER_PARAMETERS                                                                         \
    const void *send, int send_count, type_t send_type, void *receive, int count, type_t type,     \
        int root, comm_t comm
#define SCATTER_ARGUMENTS send, send_count, send_type, receive, count, type, root, comm
#define SCATTER_SEND AT_ROOT(0 < send_count ? send : NULL)
#define SCATTER_RECEIVE 0 < count ? receive : NULL

DEFINE(iallreduce, REDUCTION, STARTED)
DEFINE(ialltoall, EQUAL, STARTED)
DEFINE(ialltoallv, ALLTOALLV, STARTED)
DEFINE(ialltoallw, ALLTOALLW, STARTED)
DEFINE(ibcast, BCAST, STARTED)
DEFINE(iexscan, REDUCTION, STARTED)
DEFINE(igather, GATHER, STARTED)
DEFINE(igatherv, GATHERV, STARTED)
DEFINE(ireduce, REDUCE, STARTED)
DEFINE(ireduce_scatter, REDUCE_SCATTER, STARTED)
DEFINE(ireduce_scatter_block, REDUCTION, STARTED)
DEFINE(iscan, REDUCTION, STARTED)
DEFINE(iscatter, SCATTER, STARTED)
DEFINE(iscatterv, SCATTERV, STARTED)

DEFINE(allreduce_init, REDUCTION, PERSISTENT)
DEFINE(alltoall_init, EQUAL, PERSISTENT)
DEFINE(alltoallv_init, ALLTOALLV, PERSISTENT)
DEFINE(alltoallw_init, ALLTOALLW, PERSISTENT)
DEFINE(bcast_init, BCAST, PERSISTENT)
DEFINE(exscan_init, REDUCTION, PERSISTENT)
DEFINE(gather_init, GATHER, PERSISTENT)
DEFINE(gatherv_init, GATHERV, PERSISTENT)
DEFINE(reduce_init, REDUCE, PERSISTENT)
DEFINE(reduce_scatter_init, REDUCE_SCATTER, PERSISTENT)
DEFINE(reduce_scatter_block_init, REDUCTION, PERSISTENT)
DEFINE(scan_init, REDUCTION, PERSISTENT)
DEFINE(scatter_init, SCATTER, PERSISTENT)
DEFINE(scatterv_init, SCATTERV, PERSISTENT)

DEFINE(neighbor_allgather, EQUAL, PLAIN)
DEFINE(neighbor_allgatherv, ALLGATHERV, PLAIN)
DEFINE(neighbor_alltoall, EQUAL, PLAIN)
DEFINE(neighbor_alltoallv, ALLTOALLV, PLAIN)
DEFINE(neighbor_alltoallw, NEIGHBOR_W, PLAIN)
DEFINE(ineighbor_allgather, EQUAL, STARTED)
DEFINE(ineighbor_allgatherv, ALLGATHERV, STARTED)
DEFINE(ineighbor_alltoall, EQUAL, STARTED)
DEFINE(ineighbor_alltoallv, ALLTOALLV, STARTED)
DEFINE(ineighbor_alltoallw, NEIGHBOR_W, STARTED)
DEFINE(neighbor_allgather_init, EQUAL, PERSISTENT)
DEFINE(neighbor_allgatherv_init, ALLGATHERV, PERSISTENT)
DEFINE(neighbor_alltoall_init, EQUAL, PERSISTENT)
DEFINE(neighbor_alltoallv_init, ALLTOALLV, PERSISTENT)
DEFINE(neighbor_alltoallw_init, NEIGHBOR_W, PERSISTENT)

#define ROW(collective)                                                                            \
    [MCA_COLL_HIER_##collective] = (mca_coll_hier_function_t)refused_##collective,
static const mca_coll_hier_function_t refusals[MCA_COLL_HIER_OTHER_COUNT] = {
    MCA_COLL_HIER_REFUSED(ROW)};

mca_coll_hier_function_t mca_coll_hier_refusal(int id) { return refusals[id]; }
#endif
