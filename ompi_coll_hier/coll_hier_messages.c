/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_messages.h"

#include <stdlib.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"

/* Open MPI may not know GPUs, so device memory goes through memory of the host. */
static int stage(mca_coll_hier_messages_t* messages)
{
    const mca_coll_hier_call_t* call = messages->call;
    int rc = OMPI_SUCCESS;
    if (!call->in_place && !call->send.memory.is_reachable) {
        rc = mca_coll_hier_borrow(&messages->sent, HIER_STAGING_PINNED, call->shard_bytes);
        rc = OMPI_SUCCESS == rc ? mca_coll_hier_pack_send(call, messages->sent.base) : rc;
    }
    if (OMPI_SUCCESS == rc && !call->receive.memory.is_reachable) {
        rc = mca_coll_hier_borrow(&messages->result, HIER_STAGING_PINNED, call->total);
        if (OMPI_SUCCESS == rc && call->in_place) {
            rc = mca_coll_hier_pack_own(call, messages->result.base);
        }
    }
    return rc;
}

static mca_coll_hier_elements_t bytes_at(char* base, size_t bytes)
{
    return (mca_coll_hier_elements_t){.base = base, .count = bytes, .type = MPI_BYTE};
}

/* Where the block of a rank arrives. */
static mca_coll_hier_elements_t place_of(const mca_coll_hier_messages_t* messages, int rank)
{
    const mca_coll_hier_block_t block = mca_coll_hier_block_of(messages->call, rank);
    char* const staged = messages->result.base;
    return NULL == staged ? block.elements
                          : bytes_at(staged + block.packed.offset, block.packed.bytes);
}

static mca_coll_hier_elements_t own_block(const mca_coll_hier_messages_t* messages)
{
    const mca_coll_hier_call_t* call = messages->call;
    if (call->in_place) {
        return place_of(messages, ompi_comm_rank(call->comm));
    }
    return NULL == messages->sent.base ? call->send
                                       : bytes_at(messages->sent.base, call->shard_bytes);
}

static int receive_block(mca_coll_hier_messages_t* messages, int from, int tag)
{
    const mca_coll_hier_elements_t to = place_of(messages, from);
    return MCA_PML_CALL(irecv(to.base, to.count, to.type, from, tag, messages->call->comm,
                              &messages->requests[messages->count++]));
}

static int send_block(mca_coll_hier_messages_t* messages, int to, int tag)
{
    const mca_coll_hier_elements_t block = own_block(messages);
    return MCA_PML_CALL(isend(block.base, block.count, block.type, to, tag,
                              MCA_PML_BASE_SEND_STANDARD, messages->call->comm,
                              &messages->requests[messages->count++]));
}

/* A rank without bytes sends nothing. In place, its own block is there. */
void mca_coll_hier_start_messages(mca_coll_hier_messages_t* messages,
                                  const mca_coll_hier_call_t* call, int tag)
{
    const int size = ompi_comm_size(call->comm), self = ompi_comm_rank(call->comm);
    *messages = (mca_coll_hier_messages_t){.call = call};
    messages->requests = (ompi_request_t**)malloc(2 * (size_t)size * sizeof(ompi_request_t*));
    int rc = NULL == messages->requests ? OMPI_ERR_OUT_OF_RESOURCE : stage(messages);
    for (int rank = 0; rank < size && OMPI_SUCCESS == rc; rank++) {
        const bool is_there = call->in_place && self == rank;
        if (!is_there && 0 < mca_coll_hier_block_of(call, rank).packed.bytes) {
            rc = receive_block(messages, rank, tag);
        }
    }
    for (int i = 0; i < size && OMPI_SUCCESS == rc && 0 < call->shard_bytes; i++) {
        const int rank = (self + i) % size; /* not all to the same rank at first */
        if (!call->in_place || self != rank) {
            rc = send_block(messages, rank, tag);
        }
    }
    messages->rc = OMPI_SUCCESS == rc ? rc : mca_coll_hier_end_job(call, rc);
}

bool mca_coll_hier_move_messages(mca_coll_hier_messages_t* messages)
{
    for (; messages->first < messages->count; messages->first++) {
        ompi_request_t** message = &messages->requests[messages->first];
        if (!hier_is_over(*message)) {
            return false;
        }
        if (OMPI_SUCCESS == messages->rc) {
            messages->rc = (*message)->req_status.MPI_ERROR;
        }
        (void)ompi_request_free(message);
    }
    free(messages->requests);
    const bool is_cut = NULL != messages->sent.base; /* to the size that the others expect */
    if (OMPI_SUCCESS == messages->rc && NULL != messages->result.base) {
        messages->rc = mca_coll_hier_unpack_result(messages->call, messages->result.base);
    }
    if (OMPI_SUCCESS == messages->rc) { /* else a transfer or a copy may still use the memory */
        mca_coll_hier_give_back(&messages->sent);
        mca_coll_hier_give_back(&messages->result);
        if (is_cut) {
            messages->rc = mca_coll_hier_size_mismatch(messages->call);
        }
    }
    return true;
}
