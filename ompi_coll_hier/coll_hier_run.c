/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_run.h"

#include <string.h>

int mca_coll_hier_begin_run(mca_coll_hier_run_t* run, const mca_coll_hier_call_t* call)
{
    *run = (mca_coll_hier_run_t){.call = call};
    run->part = hier_team_part_bytes(call->module->team, call->collective->id, call->shard_bytes);
    const int rc = mca_coll_hier_place_receive(run);
    return OMPI_SUCCESS == rc ? mca_coll_hier_place_send(run) : rc;
}

bool mca_coll_hier_has_parts(const mca_coll_hier_run_t* run)
{
    return run->part < run->call->shard_bytes;
}

/* Packs what this rank sends in the part. If the application sends too little, zeros follow. */
static int pack_part(mca_coll_hier_run_t* run, char* to)
{
    const mca_coll_hier_call_t* call = run->call;
    const size_t there = call->in_place ? call->shard_bytes : mca_coll_hier_bytes_of(&call->send);
    const size_t left = there > run->first ? there - run->first : 0;
    const size_t usable = left < run->bytes ? left : run->bytes;
    memset(to + usable, 0, run->bytes - usable);
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

int mca_coll_hier_start_part(mca_coll_hier_run_t* run, int* code)
{
    const mca_coll_hier_call_t* call = run->call;
    const size_t shard = call->shard_bytes, left = shard - run->first;
    const size_t own = shard * (size_t)ompi_comm_rank(call->comm) + run->first;
    run->bytes = left < run->part ? left : run->part;
    hier_call args = {.collective = call->collective->id,
                      .bytes = run->bytes,
                      .stride = shard,
                      .in_place = call->in_place};
    args.recv = part_of(&run->receive.all, run->first, call->total - shard + run->bytes);
    /* The part's bytes are alone in memory that was borrowed for a part. */
    const bool is_alone = !call->in_place && NULL != run->send.streams;
    args.send = call->in_place ? part_of(&run->receive.all, own, run->bytes)
                               : part_of(&run->send.all, is_alone ? 0 : run->first, run->bytes);
    const int rc = NULL == run->send.streams ? OMPI_SUCCESS : pack_part(run, (char*)args.send.base);
    if (OMPI_SUCCESS == rc) {
        *code = hier_start(call->module->team, &args, &run->request);
    }
    return rc;
}

int mca_coll_hier_end_part(mca_coll_hier_run_t* run)
{
    mca_coll_hier_place_t* place = &run->receive;
    const bool has_parts = mca_coll_hier_has_parts(run);
    const size_t bytes = has_parts ? run->bytes : run->call->total;
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < place->stream_count && OMPI_SUCCESS == rc; i++) {
        char* from = place->staging.base + i * run->call->shard_bytes + run->first;
        rc = mca_coll_hier_unpack_more(&place->streams[i], from, bytes);
        if (has_parts) {
            hier_staging_drop_pages(from, bytes);
        }
    }
    run->first += run->bytes;
    return rc;
}

int mca_coll_hier_end_run(mca_coll_hier_run_t* run, int rc)
{
    const mca_coll_hier_place_t* place = &run->receive;
    if (OMPI_SUCCESS == rc && NULL != place->staging.base && NULL == place->streams) {
        rc = mca_coll_hier_unpack(place->staging.base, run->call->total, &run->call->receive);
    }
    mca_coll_hier_leave_place(&run->send, OMPI_SUCCESS != rc);
    mca_coll_hier_leave_place(&run->receive, OMPI_SUCCESS != rc);
    return rc;
}
