/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_run.h"

#include <string.h>

int mca_coll_hier_begin_run(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    run->part = hier_team_part_bytes(call->team, call->collective->id, call->largest);
    const int rc = mca_coll_hier_place_receive(run);
    return OMPI_SUCCESS == rc ? mca_coll_hier_place_send(run) : rc;
}

bool mca_coll_hier_has_parts(const mca_coll_hier_run_t* run)
{
    return run->part < run->call->largest;
}

/* The bytes of a rank's block that the part moves, in a result without gaps. */
static hier_block block_in_part(const mca_coll_hier_run_t* run, int rank)
{
    const hier_block whole = mca_coll_hier_block_of(run->call, rank).packed;
    const size_t before = run->first < whole.bytes ? run->first : whole.bytes;
    const size_t left = whole.bytes - before;
    return (hier_block){whole.offset + before, left < run->bytes ? left : run->bytes};
}

/* Packs what this rank sends in the part. If the application sends too little, zeros follow. */
static int pack_part(mca_coll_hier_run_t* run, char* to, size_t bytes)
{
    const mca_coll_hier_call_t* call = run->call;
    const size_t there = call->in_place ? call->shard_bytes : mca_coll_hier_bytes_of(&call->send);
    const size_t left = there > run->first ? there - run->first : 0;
    const size_t usable = left < bytes ? left : bytes;
    memset(to + usable, 0, bytes - usable);
    return mca_coll_hier_pack_more(run->send.streams, to, usable);
}

/* The bytes of a buffer from `at` on. */
static hier_buffer part_of(const hier_buffer* all, size_t at, size_t bytes)
{
    hier_buffer part = *all;
    part.base = (char*)all->base + at;
    part.bytes = bytes;
    part.before = at;
    part.after = all->bytes - at - bytes;
    return part;
}

static void set_result(const mca_coll_hier_run_t* run, hier_call* args)
{
    const mca_coll_hier_call_t* call = run->call;
    const hier_buffer* all = &run->receive.all;
    if (NULL == call->shards || call->shards->are_equal) {
        args->recv = part_of(all, run->first, all->bytes - call->largest + run->bytes);
        args->displacements = run->receive.displacements;
        return;
    }
    args->recv = *all;
    args->blocks = call->shards->packed;
    if (mca_coll_hier_has_parts(run)) {
        args->blocks = call->shards->of_part;
        for (int rank = 0; rank < ompi_comm_size(call->comm); rank++) {
            call->shards->of_part[rank] = block_in_part(run, rank);
        }
    }
    args->displacements = mca_coll_hier_displacements_of_part(run, args->blocks);
}

/* Is the part all of a call that may come again, on the buffers of the application? */
static bool is_repeatable(const mca_coll_hier_run_t* run)
{
    return run->call->is_repeated && !mca_coll_hier_has_parts(run) &&
           NULL == run->send.staging.base && NULL == run->receive.staging.base;
}

/* Is nothing left to do when the part has ended? */
static bool ends_with_part(const mca_coll_hier_run_t* run)
{
    return !mca_coll_hier_has_parts(run) && NULL == run->receive.staging.base &&
           OMPI_SUCCESS == mca_coll_hier_size_mismatch(run->call);
}

static int waiter_of(const mca_coll_hier_call_t* call)
{
    return call->in_background ? HIER_NOBODY : HIER_CALLER;
}

void mca_coll_hier_start_prepared(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    run->code = hier_start_prepared(
        call->team, run->request, waiter_of(call),
        NULL != call->on_success && ends_with_part(run) ? call->on_success : NULL, call->context);
}

static void start(mca_coll_hier_run_t* run, const hier_call* args)
{
    hier_team* team = run->call->team;
    if (!is_repeatable(run)) {
        run->code = hier_start(team, args, &run->request);
        return;
    }
    run->code = hier_prepare(team, args, &run->request);
    run->is_prepared = HIER_OK == run->code;
    if (run->is_prepared) {
        mca_coll_hier_start_prepared(run);
    }
}

int mca_coll_hier_start_part(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    const size_t left = call->largest - run->first;
    run->bytes = left < run->part ? left : run->part;
    const int rank = ompi_comm_rank(call->comm);
    const hier_block own = block_in_part(run, rank);
    /* A rank without bytes has nothing to copy either. */
    const bool in_place = call->in_place || 0 == own.bytes;
    hier_call args = {.collective = call->collective->id,
                      .bytes = run->bytes,
                      .stride = call->largest,
                      .in_place = in_place,
                      .waiter = waiter_of(call),
                      .on_success = ends_with_part(run) ? call->on_success : NULL,
                      .context = call->context};
    set_result(run, &args);
    /* The part's bytes are alone in memory that was borrowed for a part. */
    const bool is_alone = NULL != run->send.streams;
    const size_t own_at = 0 == own.bytes ? 0 : mca_coll_hier_displaced(run, rank, own.offset);
    args.send = in_place ? part_of(&run->receive.all, own_at, own.bytes)
                         : part_of(&run->send.all, is_alone ? 0 : run->first, own.bytes);
    const bool is_packed = NULL != run->send.streams && 0 < own.bytes;
    const int rc = is_packed ? pack_part(run, (char*)args.send.base, own.bytes) : OMPI_SUCCESS;
    if (OMPI_SUCCESS == rc) {
        start(run, &args);
    }
    return rc;
}

int mca_coll_hier_end_part(mca_coll_hier_run_t* run)
{
    mca_coll_hier_place_t* place = &run->receive;
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < place->stream_count && OMPI_SUCCESS == rc; i++) {
        const hier_block block =
            place->is_by_block ? block_in_part(run, (int)i) : (hier_block){0, run->call->total};
        char* from = place->staging.base + block.offset;
        rc = mca_coll_hier_unpack_more(&place->streams[i], from, block.bytes);
    }
    /* The last page of a block may be the first one of the next block. */
    for (size_t i = 0; i < place->stream_count && mca_coll_hier_has_parts(run); i++) {
        const hier_block block = block_in_part(run, (int)i);
        if (0 < block.bytes) {
            hier_staging_drop_pages(place->staging.base + block.offset, block.bytes);
        }
    }
    run->first += run->bytes;
    return rc;
}

int mca_coll_hier_end_run(mca_coll_hier_run_t* run, int rc)
{
    const mca_coll_hier_place_t* place = &run->receive;
    if (OMPI_SUCCESS == rc && NULL != place->staging.base && NULL == place->streams) {
        rc = mca_coll_hier_unpack_result(run->call, place->staging.base);
    }
    mca_coll_hier_leave_place(&run->send, OMPI_SUCCESS != rc);
    mca_coll_hier_leave_place(&run->receive, OMPI_SUCCESS != rc);
    return rc;
}
