/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_call.h"

#include <string.h>

#include "coll_hier_staging.h"

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

int mca_coll_hier_pack_send(const mca_coll_hier_call_t* call, char* packed)
{
    const size_t bytes = mca_coll_hier_bytes_of(&call->send);
    const size_t usable = bytes < call->shard_bytes ? bytes : call->shard_bytes;
    if (usable < call->shard_bytes) {
        memset(packed + usable, 0, call->shard_bytes - usable);
    }
    return mca_coll_hier_pack(packed, usable, &call->send);
}

int mca_coll_hier_pack_own(const mca_coll_hier_call_t* call, char* result)
{
    return mca_coll_hier_pack(result + call->shard_bytes * (size_t)ompi_comm_rank(call->comm),
                              call->shard_bytes, &call->own);
}
