/* SPDX-License-Identifier: BSD-3-Clause */
/* Results whose blocks do not lie one behind the other in rank order. Where the team can, each block goes where the
 * application wants it. Otherwise the result is staged. */
#include "coll_hier_run.h"

#include <stdlib.h>

/* From the first byte of all blocks to the last one, as addresses. */
typedef struct {
    uintptr_t first, end;
} range_t;

static size_t largest_count(const mca_coll_hier_call_t* call)
{
    const mca_coll_hier_elements_t one = {.count = 1, .type = call->receive.type};
    return call->largest / mca_coll_hier_bytes_of(&one);
}

/* A block without gaps begins `offset` bytes behind its base. */
static uintptr_t begin_of(const mca_coll_hier_block_t* block, ptrdiff_t offset)
{
    return (uintptr_t)mca_coll_hier_at(block->elements.base, offset);
}

static range_t range_of(const mca_coll_hier_call_t* call, ptrdiff_t offset)
{
    range_t range = {UINTPTR_MAX, 0};
    for (int rank = 0; rank < ompi_comm_size(call->comm); rank++) {
        const mca_coll_hier_block_t block = mca_coll_hier_block_of(call, rank);
        const uintptr_t begin = begin_of(&block, offset), end = begin + block.packed.bytes;
        if (0 < block.packed.bytes) {
            range.first = begin < range.first ? begin : range.first;
            range.end = end > range.end ? end : range.end;
        }
    }
    return range;
}

/* Networks register what lies between the blocks, too. Devices show one allocation to their peers. */
static bool is_one_buffer(const mca_coll_hier_call_t* call, range_t range)
{
    enum { most_gaps = 3 }; /* times the bytes of the blocks */
    const hier_memory* memory = &call->receive.memory;
    const uintptr_t base = (uintptr_t)memory->base;
    const size_t bytes = range.end - range.first;
    const bool is_inside =
        NULL == memory->base || (base <= range.first && range.end - base <= memory->length);
    return is_inside && bytes / (1 + most_gaps) <= call->total &&
           bytes <= hier_team_max_bytes(call->team);
}

bool mca_coll_hier_place_displaced(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    mca_coll_hier_place_t* place = &run->receive;
    const size_t size = (size_t)ompi_comm_size(call->comm);
    const bool are_equal = NULL == call->shards || call->shards->are_equal;
    ptrdiff_t offset;
    if (!mca_coll_hier_is_dense(call->receive.type, largest_count(call), &offset) ||
        !hier_team_takes_displacements(call->team, call->collective->id, call->largest,
                                       are_equal)) {
        return false;
    }
    const range_t range = range_of(call, offset);
    if (!is_one_buffer(call, range)) {
        return false;
    }
    place->displacements = (size_t*)malloc(2 * size * sizeof(size_t));
    if (NULL == place->displacements) {
        return false;
    }
    place->all.base = (void*)range.first;
    place->all.bytes = range.end - range.first;
    for (size_t rank = 0; rank < size; rank++) {
        const mca_coll_hier_block_t block = mca_coll_hier_block_of(call, (int)rank);
        const bool is_empty = 0 == block.packed.bytes;
        place->displacements[rank] = is_empty ? 0 : begin_of(&block, offset) - range.first;
    }
    return true;
}

size_t mca_coll_hier_displaced(const mca_coll_hier_run_t* run, int rank, size_t offset)
{
    if (NULL == run->receive.displacements) {
        return offset;
    }
    return run->receive.displacements[rank] +
           (offset - mca_coll_hier_block_of(run->call, rank).packed.offset);
}

const size_t* mca_coll_hier_displacements_of_part(const mca_coll_hier_run_t* run,
                                                  const hier_block* blocks)
{
    const int size = ompi_comm_size(run->call->comm);
    size_t* of_part = NULL == run->receive.displacements ? NULL : run->receive.displacements + size;
    for (int rank = 0; NULL != of_part && rank < size; rank++) {
        of_part[rank] = mca_coll_hier_displaced(run, rank, blocks[rank].offset);
    }
    return of_part;
}
