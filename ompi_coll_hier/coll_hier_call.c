/* SPDX-License-Identifier: BSD-3-Clause */
/* A call's buffers in memory of ours, where they cannot be used as they are. */
#include "coll_hier_call.h"

#include <string.h>

#include "ompi/datatype/ompi_datatype.h"

size_t mca_coll_hier_bytes_of(const mca_coll_hier_elements_t* elements)
{
    size_t type_bytes;
    ompi_datatype_type_size(elements->type, &type_bytes);
    return type_bytes * elements->count;
}

int mca_coll_hier_size_mismatch(const mca_coll_hier_call_t* call)
{
    const size_t bytes = call->in_place ? call->shard_bytes : mca_coll_hier_bytes_of(&call->send);
    return bytes == call->shard_bytes  ? OMPI_SUCCESS
           : bytes > call->shard_bytes ? MPI_ERR_TRUNCATE
                                       : MPI_ERR_COUNT;
}

int mca_coll_hier_pack_send(const mca_coll_hier_call_t* call, mca_coll_hier_staging_t* staging)
{
    const size_t bytes = mca_coll_hier_bytes_of(&call->send);
    const size_t usable = bytes < call->shard_bytes ? bytes : call->shard_bytes;
    char* base =
        (char*)mca_coll_hier_reserve(staging, call->shard_bytes, !call->send.memory.is_reachable);
    if (NULL == base) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (usable < call->shard_bytes) {
        memset(base + usable, 0, call->shard_bytes - usable);
    }
    return mca_coll_hier_pack(staging, 0, usable, &call->send);
}

int mca_coll_hier_stage_receive(const mca_coll_hier_call_t* call, mca_coll_hier_staging_t* staging)
{
    if (NULL == mca_coll_hier_reserve(staging, call->total, !call->receive.memory.is_reachable)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!call->in_place) {
        return OMPI_SUCCESS;
    }
    return mca_coll_hier_pack(staging, call->shard_bytes * (size_t)ompi_comm_rank(call->comm),
                              call->shard_bytes, &call->own);
}
