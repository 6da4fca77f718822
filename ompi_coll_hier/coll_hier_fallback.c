/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call by the fallback module. The stock modules read and write buffers by the CPU, so device memory goes
 * through memory of the host. */
#include "coll_hier_call.h"
#include "coll_hier_staging.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

int mca_coll_hier_lacks_memory(struct ompi_communicator_t* comm)
{
    opal_output(0, "coll:hier: rank %d has no memory, or no thread, for a call on %s: the job ends",
                ompi_comm_rank(comm), comm->c_name);
    return ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
}

/* In a call of a stock module a rank cannot tell the others that it cannot take part: they would wait for it,
 * or return without its block. So the job ends. */
int mca_coll_hier_end_job(const mca_coll_hier_call_t* call, int error)
{
    opal_output(0,
                "coll:hier: rank %d cannot copy its device memory for %s of %zu bytes a rank on "
                "%s, or cannot send it. No team serves the call, and no other rank can be told, so "
                "the job ends",
                ompi_comm_rank(call->comm), call->collective->name, call->shard_bytes,
                call->comm->c_name);
    return ompi_mpi_abort(call->comm, error);
}

/* Staged bytes as elements of the receiving type: the number of bytes may be too large for a count. */
static int describe(const mca_coll_hier_call_t* call, const mca_coll_hier_staging_t* staging,
                    mca_coll_hier_buffer_t* buffer)
{
    *buffer = (mca_coll_hier_buffer_t){staging->base, 0, NULL, false};
    mca_coll_hier_describe_bytes(call->own.count, call->shard_bytes / call->own.count, buffer);
    return NULL == buffer->type ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

static int stage_send(const mca_coll_hier_call_t* call, mca_coll_hier_staging_t* staging,
                      mca_coll_hier_buffer_t* send)
{
    int rc = mca_coll_hier_borrow(staging, HIER_STAGING_PINNED, call->shard_bytes);
    rc = OMPI_SUCCESS == rc ? mca_coll_hier_pack_send(call, staging->base) : rc;
    return OMPI_SUCCESS == rc ? describe(call, staging, send) : rc;
}

static int stage_receive(const mca_coll_hier_call_t* call, mca_coll_hier_staging_t* staging,
                         mca_coll_hier_buffer_t* receive)
{
    int rc = mca_coll_hier_borrow(staging, HIER_STAGING_PINNED, call->total);
    if (OMPI_SUCCESS == rc && call->in_place) {
        rc = mca_coll_hier_pack_own(call, staging->base);
    }
    return OMPI_SUCCESS == rc ? describe(call, staging, receive) : rc;
}

int mca_coll_hier_by_fallback(const mca_coll_hier_call_t* call, mca_coll_hier_buffer_t send,
                              mca_coll_hier_buffer_t receive)
{
    const bool stages_send = !call->in_place && !call->send.memory.is_reachable;
    const bool stages_result = !call->receive.memory.is_reachable;
    mca_coll_hier_staging_t sent = {NULL, false}, result = {NULL, false};
    int rc = stages_send ? stage_send(call, &sent, &send) : OMPI_SUCCESS;
    if (OMPI_SUCCESS == rc && stages_result) {
        rc = stage_receive(call, &result, &receive);
    }
    if (OMPI_SUCCESS != rc) {
        return mca_coll_hier_end_job(call, rc);
    }
    rc = call->collective->fallback(call, &send, &receive);
    mca_coll_hier_drop_type(&send);
    mca_coll_hier_drop_type(&receive);
    if (OMPI_SUCCESS == rc && stages_result) {
        rc = mca_coll_hier_unpack(result.base, call->total, &call->receive);
    }
    if (OMPI_SUCCESS == rc) { /* else a transfer or a copy may still use the memory */
        mca_coll_hier_give_back(&sent);
        mca_coll_hier_give_back(&result);
    }
    return OMPI_SUCCESS == rc && stages_send ? mca_coll_hier_size_mismatch(call) : rc;
}
