/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call by the fallback module. The stock modules read and write buffers by the CPU, so device memory goes
 * through memory of the host. */
#include "coll_hier_call.h"

#include <string.h>

#include "opal/util/output.h"

/* In a call of a stock module a rank cannot tell the others that it cannot take part. So it takes part: it
 * sends zeros for its block, from pageable memory, and returns the error itself. If there is no memory at
 * all, the bytes that it receives are lost, and so are those that it should have passed on. */
static int stage(const mca_coll_hier_call_t* call, bool is_send, mca_coll_hier_buffer_t* buffer)
{
    mca_coll_hier_module_t* module = call->module;
    const size_t rank = (size_t)ompi_comm_rank(call->comm);
    /* In elements of the receiving type: the number of bytes may be too large for a count. */
    *buffer = (mca_coll_hier_buffer_t){NULL, 0, NULL, false};
    mca_coll_hier_describe_bytes(call->own.count, call->shard_bytes / call->own.count, buffer);
    mca_coll_hier_staging_t* staging = is_send ? &module->send_staging : &module->receive_staging;
    const int rc = is_send ? mca_coll_hier_pack_send(call, staging)
                           : mca_coll_hier_stage_receive(call, staging);
    if (OMPI_SUCCESS == rc) {
        buffer->base = staging->base;
        return rc;
    }
    buffer->base = mca_coll_hier_reserve(staging, is_send ? call->shard_bytes : call->total, false);
    if (NULL == buffer->base) {
        mca_coll_hier_drop_type(buffer);
        mca_coll_hier_make_placeholder(call->shard_bytes, is_send, buffer);
    } else {
        char* const own = (char*)buffer->base + (is_send ? 0 : call->shard_bytes * rank);
        memset(own, 0, call->shard_bytes);
    }
    return rc;
}

static void tell_of_absence(const mca_coll_hier_call_t* call, bool has_memory)
{
    opal_output(0, "coll:hier: rank %d cannot take part in %s of %zu bytes a rank on %s: %s",
                ompi_comm_rank(call->comm), call->collective->name, call->shard_bytes,
                call->comm->c_name,
                has_memory ? "the others get zeros for its block"
                           : "it has no memory, and the others' results are worth nothing");
}

int mca_coll_hier_by_fallback(const mca_coll_hier_call_t* call, mca_coll_hier_buffer_t send,
                              mca_coll_hier_buffer_t receive)
{
    mca_coll_hier_module_t* module = call->module;
    const bool stages_send = !call->in_place && !call->send.memory.is_reachable;
    const bool stages_result = !call->receive.memory.is_reachable;
    int rc = stages_send ? stage(call, true, &send) : OMPI_SUCCESS;
    const int rc_receive = stages_result ? stage(call, false, &receive) : OMPI_SUCCESS;
    rc = OMPI_SUCCESS == rc ? rc_receive : rc;
    const bool takes_part = (NULL != send.type || !stages_send) && NULL != receive.type;
    if (OMPI_SUCCESS != rc || !takes_part) {
        tell_of_absence(call, takes_part && !mca_coll_hier_is_placeholder(&receive));
    }
    int rc_fallback = OMPI_ERR_OUT_OF_RESOURCE;
    if (takes_part) {
        rc_fallback = call->collective->fallback(call, &send, &receive);
    }
    mca_coll_hier_drop_type(&send);
    mca_coll_hier_drop_type(&receive);
    rc = OMPI_SUCCESS == rc ? rc_fallback : rc;
    if (OMPI_SUCCESS == rc && stages_result) {
        rc = mca_coll_hier_unpack(&module->receive_staging, call->total, &call->receive);
    }
    return OMPI_SUCCESS == rc && stages_send ? mca_coll_hier_size_mismatch(call) : rc;
}
