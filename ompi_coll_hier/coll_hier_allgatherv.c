/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgatherv: blocks of different sizes, which lie anywhere in the receive buffer.
 *
 * Counts are equal on all ranks, displacements need not be. So the team works on a result in which the blocks lie
 * in rank order without gaps. A receive buffer like that is used where it is. Any other is staged. */
#include "coll_hier_call.h"

#include <stdlib.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

/* The mirrors of coll_hier_others.c, or the fallback module where there are none, take the arguments as they are. */
static const mca_coll_hier_collective_t allgatherv = {
    HIER_ALLGATHER, "MPI_Allgatherv", NULL, &mca_coll_hier_component.allgatherv_calls,
    &mca_coll_hier_component.allgatherv_fallbacks};

/* Finds where the blocks are, their bytes, and the elements of all ranks. `packed` has room for all blocks. */
static void find_blocks(mca_coll_hier_call_t* call, mca_coll_hier_shards_t* shards,
                        hier_block* packed)
{
    const int size = ompi_comm_size(call->comm);
    mca_coll_hier_elements_t* all = &call->receive;
    ptrdiff_t lower_bound, extent, next = 0;
    size_t type_bytes;
    ompi_datatype_type_size(all->type, &type_bytes);
    ompi_datatype_get_extent(all->type, &lower_bound, &extent);
    shards->packed = packed;
    shards->are_equal = shards->are_in_order = true;
    for (int rank = 0; rank < size; rank++) {
        const size_t count = HIER_COUNT_AT(shards->counts, rank);
        const ptrdiff_t at = HIER_DISPLACEMENT_AT(shards->displacements, rank);
        packed[rank] = (hier_block){call->total, count * type_bytes};
        shards->are_equal = shards->are_equal && packed[rank].bytes == packed[0].bytes;
        if (0 == packed[rank].bytes) {
            continue; /* its displacement means nothing */
        }
        if (0 == call->total) {
            all->base = mca_coll_hier_at(shards->base, at * extent);
            next = at;
        }
        shards->are_in_order = shards->are_in_order && at == next;
        next = at + (ptrdiff_t)count;
        all->count += count;
        call->total += packed[rank].bytes;
        call->largest = packed[rank].bytes > call->largest ? packed[rank].bytes : call->largest;
    }
    call->shards = shards->are_equal && shards->are_in_order ? NULL : shards;
}

/* Two blocks for each rank. NULL: there is no memory. */
static hier_block* memory_for_blocks(mca_coll_hier_module_t* module, int size)
{
    if (NULL == module->blocks) {
        module->blocks = (hier_block*)malloc(2 * (size_t)size * sizeof *module->blocks);
    }
    return module->blocks;
}

int mca_coll_hier_allgatherv(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                             void* rbuf, hier_counts_t rcounts, hier_displacements_t displacements,
                             struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                             mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const bool in_place = MPI_IN_PLACE == sbuf; /* the other send arguments mean nothing then */
    mca_coll_hier_shards_t shards = {
        .counts = rcounts, .displacements = displacements, .base = rbuf};
    mca_coll_hier_call_t call = {
        .collective = &allgatherv,
        .module = hier,
        .comm = comm,
        .in_place = in_place,
        .send = {(void*)sbuf, (size_t)scount, sdtype, {.is_reachable = 1}, &hier->send_copies},
        .receive = {rbuf, 0, rdtype, {.is_reachable = 1}, &hier->receive_copies}};
    hier_block* blocks = memory_for_blocks(hier, size);
    if (NULL == blocks) { /* the other ranks would wait for this one */
        opal_output(0, "coll:hier: no memory for the blocks of %d ranks: the job ends", size);
        return ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
    }
    shards.of_part = blocks + size;
    find_blocks(&call, &shards, blocks);
    if (0 == call.total) { /* on all ranks: nothing to do */
        mca_coll_hier_count(&call, allgatherv.calls);
        return OMPI_SUCCESS;
    }
    call.shard_bytes = blocks[rank].bytes;
    mca_coll_hier_find_memory(&call);
    call.own = mca_coll_hier_block_of(&call, rank).elements;
    call.own.copies = &hier->send_copies;

    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_serve(&call, &rc)) {
        return rc;
    }
    return hier->fallback_allgatherv(sbuf, scount, sdtype, rbuf, rcounts, displacements, rdtype,
                                     comm, hier->fallback_allgatherv_module);
}
