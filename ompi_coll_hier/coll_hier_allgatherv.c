/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgatherv, MPI_Iallgatherv and MPI_Allgatherv_init: blocks of different sizes, which lie anywhere in the receive buffer.
 *
 * Counts are equal on all ranks, displacements need not be. So the team works on a result in which the blocks lie
 * in rank order without gaps. A receive buffer like that is used where it is. Of others coll_hier_displaced.c tells the
 * team where the blocks are, or they are staged. */
#include "coll_hier_persistent.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"

/* The mirrors of coll_hier_mirrored.c, or the fallback module where there are none, take the arguments as they are. */
static const mca_coll_hier_collective_t allgatherv = {HIER_ALLGATHER, "MPI_Allgatherv", NULL,
                                                      MCA_COLL_HIER_COUNT_ALLGATHERV};
static const mca_coll_hier_collective_t iallgatherv = {HIER_ALLGATHER, "MPI_Iallgatherv", NULL,
                                                       MCA_COLL_HIER_COUNT_IALLGATHERV};
static const mca_coll_hier_collective_t allgatherv_init = {
    HIER_ALLGATHER, "MPI_Allgatherv_init", NULL, MCA_COLL_HIER_COUNT_ALLGATHERV_INIT};

static size_t bytes_of_blocks(size_t size)
{
    return size * (2 * sizeof(hier_block) + sizeof(size_t) + sizeof(ptrdiff_t));
}

/* Memory for the blocks of all ranks, unless it is there. False: there is none. */
static bool allocate_blocks(mca_coll_hier_shards_t* shards, size_t size)
{
    if (NULL == shards->packed) {
        shards->packed = (hier_block*)malloc(bytes_of_blocks(size));
    }
    if (NULL == shards->packed) {
        return false;
    }
    shards->of_part = shards->packed + size;
    shards->counts = (size_t*)(shards->of_part + size);
    shards->displacements = (ptrdiff_t*)(shards->counts + size);
    return true;
}

bool mca_coll_hier_copy_blocks(const mca_coll_hier_shards_t* from, mca_coll_hier_shards_t* to,
                               size_t size)
{
    if (!allocate_blocks(to, size)) {
        return false;
    }
    memcpy(to->packed, from->packed, bytes_of_blocks(size));
    to->base = from->base;
    to->are_equal = from->are_equal;
    to->are_in_order = from->are_in_order;
    return true;
}

bool mca_coll_hier_have_same_blocks(const mca_coll_hier_call_t* a, const mca_coll_hier_call_t* b)
{
    const mca_coll_hier_shards_t *of_a = a->shards, *of_b = b->shards;
    if (NULL == of_a || NULL == of_b) {
        return of_a == of_b;
    }
    const size_t size = (size_t)ompi_comm_size(a->comm);
    return of_a->base == of_b->base &&
           0 == memcmp(of_a->counts, of_b->counts, size * sizeof *of_a->counts) &&
           0 ==
               memcmp(of_a->displacements, of_b->displacements, size * sizeof *of_a->displacements);
}

/* Finds where the blocks are, their bytes, and the elements of all ranks. The application may change its arrays
 * afterwards. */
static void find_blocks(mca_coll_hier_call_t* call, mca_coll_hier_shards_t* shards,
                        hier_counts_t counts, hier_displacements_t displacements)
{
    const int size = ompi_comm_size(call->comm);
    mca_coll_hier_elements_t* all = &call->receive;
    ptrdiff_t lower_bound, extent, next = 0;
    size_t type_bytes;
    ompi_datatype_type_size(all->type, &type_bytes);
    ompi_datatype_get_extent(all->type, &lower_bound, &extent);
    hier_block* packed = shards->packed;
    shards->base = all->base;
    shards->are_equal = shards->are_in_order = true;
    for (int rank = 0; rank < size; rank++) {
        const size_t count = HIER_COUNT_AT(counts, rank);
        const ptrdiff_t at = HIER_DISPLACEMENT_AT(displacements, rank);
        shards->counts[rank] = count;
        shards->displacements[rank] = at;
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
    call->shard_bytes = packed[ompi_comm_rank(call->comm)].bytes;
    call->shards = shards->are_equal && shards->are_in_order ? NULL : shards;
}

int mca_coll_hier_allgatherv(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                             void* rbuf, hier_counts_t rcounts, hier_displacements_t displacements,
                             struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                             mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    mca_coll_hier_call_t call;
    if (!allocate_blocks(&hier->shards, (size_t)ompi_comm_size(comm))) {
        return mca_coll_hier_lacks_memory(comm);
    }
    mca_coll_hier_describe(&call, sbuf, (size_t)scount, sdtype, rbuf, rdtype, comm, module);
    call.collective = &allgatherv;
    find_blocks(&call, &hier->shards, rcounts, displacements);
    if (0 == call.total) { /* on all ranks: nothing to do */
        mca_coll_hier_count_served(&call);
        return OMPI_SUCCESS;
    }
    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_serve(&call, &rc)) {
        return rc;
    }
    return hier->fallback_allgatherv(sbuf, scount, sdtype, rbuf, rcounts, displacements, rdtype,
                                     comm, hier->fallback_allgatherv_module);
}

/* NULL: the job ends. */
static mca_coll_hier_request_t*
new_request(const mca_coll_hier_collective_t* collective, const void* sbuf, hier_count_t scount,
            struct ompi_datatype_t* sdtype, void* rbuf, hier_counts_t rcounts,
            hier_displacements_t displacements, struct ompi_datatype_t* rdtype,
            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    mca_coll_hier_request_t* request = mca_coll_hier_new_request(comm);
    if (NULL == request) {
        return NULL;
    }
    if (!allocate_blocks(&request->shards, (size_t)ompi_comm_size(comm))) {
        (void)mca_coll_hier_lacks_memory(comm);
        return NULL;
    }
    mca_coll_hier_describe(&request->call, sbuf, (size_t)scount, sdtype, rbuf, rdtype, comm,
                           module);
    request->call.collective = collective;
    find_blocks(&request->call, &request->shards, rcounts, displacements);
    return request;
}

int mca_coll_hier_iallgatherv(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                              void* rbuf, hier_counts_t rcounts, hier_displacements_t displacements,
                              struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                              struct ompi_request_t** handle, mca_coll_base_module_t* module)
{
    mca_coll_hier_request_t* request = new_request(&iallgatherv, sbuf, scount, sdtype, rbuf,
                                                   rcounts, displacements, rdtype, comm, module);
    return NULL == request ? OMPI_ERR_OUT_OF_RESOURCE : mca_coll_hier_start_once(request, handle);
}

int mca_coll_hier_allgatherv_init(const void* sbuf, hier_count_t scount,
                                  struct ompi_datatype_t* sdtype, void* rbuf, hier_counts_t rcounts,
                                  hier_displacements_t displacements,
                                  struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                  struct ompi_info_t* info, struct ompi_request_t** handle,
                                  mca_coll_base_module_t* module)
{
    (void)info;
    mca_coll_hier_request_t* request = new_request(&allgatherv_init, sbuf, scount, sdtype, rbuf,
                                                   rcounts, displacements, rdtype, comm, module);
    return NULL == request ? OMPI_ERR_OUT_OF_RESOURCE
                           : mca_coll_hier_make_persistent(request, handle);
}
