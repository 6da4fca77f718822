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

void mca_coll_hier_describe(mca_coll_hier_call_t* call, const void* sbuf, size_t scount,
                            struct ompi_datatype_t* sdtype, void* rbuf,
                            struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                            mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    *call = (mca_coll_hier_call_t){
        .module = hier,
        .comm = comm,
        .in_place = MPI_IN_PLACE == sbuf, /* the other send arguments mean nothing then */
        .send = {(void*)sbuf, scount, sdtype, {.is_reachable = 1}, &hier->send_copies},
        .receive = {rbuf, 0, rdtype, {.is_reachable = 1}, &hier->receive_copies}};
}

static const void* first_byte(const mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    return mca_coll_hier_at(elements->base, offset);
}

mca_coll_hier_block_t mca_coll_hier_block_of(const mca_coll_hier_call_t* call, int rank)
{
    const mca_coll_hier_shards_t* shards = call->shards;
    mca_coll_hier_block_t block = {.elements = call->receive};
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_extent(call->receive.type, &lower_bound, &extent);
    if (NULL == shards) {
        block.elements.count /= (size_t)ompi_comm_size(call->comm);
        block.elements.base =
            mca_coll_hier_at(call->receive.base, (ptrdiff_t)block.elements.count * extent * rank);
        block.packed = (hier_block){call->largest * (size_t)rank, call->largest};
    } else {
        block.elements.count = shards->counts[rank];
        block.elements.base = mca_coll_hier_at(shards->base, shards->displacements[rank] * extent);
        block.packed = shards->packed[rank];
    }
    return block;
}

/* A rank without bytes may pass any address. */
void mca_coll_hier_find_memory(mca_coll_hier_call_t* call)
{
    const bool has_send = !call->in_place && 0 < mca_coll_hier_bytes_of(&call->send);
    const void* const addresses[] = {first_byte(&call->receive),
                                     has_send ? first_byte(&call->send) : NULL};
    hier_memory* const memories[] = {&call->receive.memory, &call->send.memory};
    hier_memory_inspect(has_send ? 2 : 1, addresses, memories);
    call->own = mca_coll_hier_block_of(call, ompi_comm_rank(call->comm)).elements;
    call->own.copies = call->send.copies;
}

bool mca_coll_hier_is_same_memory(const hier_memory* before, const hier_memory* now)
{
    return HIER_OK == now->error && before->kind == now->kind && before->device == now->device &&
           before->base == now->base && before->length == now->length && before->id == now->id &&
           before->is_exportable == now->is_exportable;
}

bool mca_coll_hier_has_predefined_types(const mca_coll_hier_call_t* call)
{
    return ompi_datatype_is_predefined(call->receive.type) &&
           (call->in_place || ompi_datatype_is_predefined(call->send.type));
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
    const mca_coll_hier_block_t own = mca_coll_hier_block_of(call, ompi_comm_rank(call->comm));
    return mca_coll_hier_pack(result + own.packed.offset, call->shard_bytes, &call->own);
}

/* Blocks without gaps in device memory, some at a time: each copy that is waited for costs some 10 us. */
static int unpack_dense_blocks(const mca_coll_hier_call_t* call, char* result, ptrdiff_t offset)
{
    enum { at_once = 64 };
    hier_strided_copy copies[at_once];
    size_t used = 0;
    int code = HIER_OK;
    const int size = ompi_comm_size(call->comm);
    for (int rank = 0; rank < size && HIER_OK == code; rank++) {
        const mca_coll_hier_block_t block = mca_coll_hier_block_of(call, rank);
        if (0 < block.packed.bytes) {
            copies[used++] =
                (hier_strided_copy){.to = mca_coll_hier_at(block.elements.base, offset),
                                    .from = result + block.packed.offset,
                                    .bytes = block.packed.bytes,
                                    .rows = 1};
        }
        if (0 < used && (at_once == used || rank + 1 == size)) {
            code = hier_memory_copy(copies, used);
            used = 0;
        }
    }
    return mca_coll_hier_to_mpi_error(code);
}

int mca_coll_hier_unpack_result(const mca_coll_hier_call_t* call, char* result)
{
    if (NULL == call->shards || call->shards->are_in_order) {
        return mca_coll_hier_unpack(result, call->total, &call->receive);
    }
    ptrdiff_t offset;
    if (!call->receive.memory.is_reachable &&
        mca_coll_hier_is_dense(call->receive.type, call->receive.count, &offset)) {
        return unpack_dense_blocks(call, result, offset);
    }
    int rc = OMPI_SUCCESS;
    for (int rank = 0; rank < ompi_comm_size(call->comm) && OMPI_SUCCESS == rc; rank++) {
        const mca_coll_hier_block_t block = mca_coll_hier_block_of(call, rank);
        rc =
            mca_coll_hier_unpack(result + block.packed.offset, block.packed.bytes, &block.elements);
    }
    return rc;
}
