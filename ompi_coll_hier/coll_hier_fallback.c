/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call by the fallback module. The stock modules read and write buffers by the CPU, so device memory goes
 * through memory of the host. */
#include "coll_hier_call.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

/* In a call of a stock module a rank cannot tell the others that it cannot take part: they would wait for it,
 * or return without its block. So the job ends. */
static int end_job(const mca_coll_hier_call_t* call, int error)
{
    opal_output(0,
                "coll:hier: rank %d cannot copy its device memory for %s of %zu bytes a rank on "
                "%s, which the "
                "fallback module serves. No other rank can be told, so the job ends",
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

int mca_coll_hier_by_fallback(const mca_coll_hier_call_t* call, mca_coll_hier_buffer_t send,
                              mca_coll_hier_buffer_t receive)
{
    mca_coll_hier_module_t* module = call->module;
    const bool stages_send = !call->in_place && !call->send.memory.is_reachable;
    const bool stages_result = !call->receive.memory.is_reachable;
    int rc = OMPI_SUCCESS;
    if (stages_send) {
        rc = mca_coll_hier_pack_send(call, &module->send_staging);
        rc = OMPI_SUCCESS == rc ? describe(call, &module->send_staging, &send) : rc;
    }
    if (OMPI_SUCCESS == rc && stages_result) {
        rc = mca_coll_hier_stage_receive(call, &module->receive_staging);
        rc = OMPI_SUCCESS == rc ? describe(call, &module->receive_staging, &receive) : rc;
    }
    if (OMPI_SUCCESS != rc) {
        return end_job(call, rc);
    }
    rc = call->collective->fallback(call, &send, &receive);
    mca_coll_hier_drop_type(&send);
    mca_coll_hier_drop_type(&receive);
    if (OMPI_SUCCESS == rc && stages_result) {
        rc = mca_coll_hier_unpack(&module->receive_staging, call->total, &call->receive);
    }
    return OMPI_SUCCESS == rc && stages_send ? mca_coll_hier_size_mismatch(call) : rc;
}
