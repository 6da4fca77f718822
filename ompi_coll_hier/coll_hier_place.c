/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the buffers of a call are for the team: where the application has them, or in staging memory. */
#include "coll_hier_run.h"

#include <stdlib.h>

#include "ompi/datatype/ompi_datatype.h"

static bool are_in_order(const mca_coll_hier_call_t* call)
{
    return NULL == call->shards || call->shards->are_in_order;
}

static bool is_in_reach(const mca_coll_hier_call_t* call, const mca_coll_hier_elements_t* elements)
{
    return elements->memory.is_reachable || hier_team_takes_device_memory(call->team);
}

/* Can the team work on these elements where they are? Then they start at `start`. */
static bool is_usable(const mca_coll_hier_call_t* call, const mca_coll_hier_elements_t* elements,
                      void** start)
{
    ptrdiff_t offset;
    const bool is_dense = mca_coll_hier_is_dense(elements->type, elements->count, &offset);
    *start = mca_coll_hier_at(elements->base, offset);
    return is_dense && is_in_reach(call, elements);
}

/* Devices reach each other's memory faster than the host's memory. But on NVIDIA a kernel of the driver packs
 * inside a device, and for small blocks it takes longer than a copy engine. So device memory is borrowed
 * only where few large copies pack the elements. */
static bool borrow_on_device(const mca_coll_hier_call_t* call,
                             const mca_coll_hier_elements_t* elements, size_t bytes,
                             mca_coll_hier_staging_t* staging)
{
    mca_coll_hier_module_t* module = call->module;
    if (module->lacks_device_memory || !hier_team_takes_device_memory(call->team) ||
        bytes > HIER_MAX_LENT || bytes > mca_coll_hier_bytes_of(elements) ||
        !mca_coll_hier_is_regular(elements, bytes)) {
        return false;
    }
    module->lacks_device_memory = !mca_coll_hier_borrow_on_device(staging, bytes, elements);
    return !module->lacks_device_memory;
}

/* `bytes`: of all that the device's elements give or take. */
static int stage_device(const mca_coll_hier_run_t* run, const mca_coll_hier_elements_t* elements,
                        size_t bytes, mca_coll_hier_place_t* place)
{
    return borrow_on_device(run->call, elements, bytes, &place->staging)
               ? OMPI_SUCCESS
               : mca_coll_hier_borrow(&place->staging, HIER_STAGING_PINNED, bytes);
}

static void use_staging(mca_coll_hier_place_t* place)
{
    place->all.base = place->staging.base;
    const void* const address = place->all.base;
    hier_memory* const memory = &place->all.memory;
    hier_memory_inspect(1, &address, &memory);
}

static int make_streams(mca_coll_hier_place_t* place, size_t count)
{
    place->streams = (mca_coll_hier_stream_t*)malloc(count * sizeof *place->streams);
    return NULL == place->streams ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

static int add_stream(mca_coll_hier_place_t* place, const mca_coll_hier_elements_t* elements,
                      bool is_pack)
{
    return mca_coll_hier_begin_stream(&place->streams[place->stream_count++], elements, is_pack);
}

static int unpack_by_parts(const mca_coll_hier_run_t* run, mca_coll_hier_place_t* place)
{
    const mca_coll_hier_call_t* call = run->call;
    const bool has_parts = mca_coll_hier_has_parts(run);
    place->is_by_block = has_parts || !are_in_order(call);
    const int count = place->is_by_block ? ompi_comm_size(call->comm) : 1;
    int rc = mca_coll_hier_borrow(&place->staging,
                                  has_parts ? HIER_STAGING_SPARSE : HIER_STAGING_HOST, call->total);
    place->all.is_sparse = has_parts;
    rc = OMPI_SUCCESS == rc ? make_streams(place, (size_t)count) : rc;
    for (int rank = 0; rank < count && OMPI_SUCCESS == rc; rank++) {
        const mca_coll_hier_elements_t elements =
            place->is_by_block ? mca_coll_hier_block_of(call, rank).elements : call->receive;
        rc = add_stream(place, &elements, false);
    }
    return rc;
}

int mca_coll_hier_place_receive(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    mca_coll_hier_place_t* place = &run->receive;
    place->all = (hier_buffer){.bytes = call->total, .memory = call->receive.memory};
    if (are_in_order(call) && is_usable(call, &call->receive, &place->all.base)) {
        return OMPI_SUCCESS;
    }
    if (is_in_reach(call, &call->receive) && mca_coll_hier_place_displaced(run)) {
        return OMPI_SUCCESS;
    }
    const bool is_on_host = call->receive.memory.is_reachable;
    int rc = is_on_host ? unpack_by_parts(run, place)
                        : stage_device(run, &call->receive, call->total, place);
    if (OMPI_SUCCESS == rc) {
        use_staging(place);
    }
    if (OMPI_SUCCESS == rc && call->in_place && !is_on_host) {
        rc = mca_coll_hier_pack_own(call, place->staging.base);
    }
    return rc;
}

/* In place, the own block is packed into the memory for the result. */
int mca_coll_hier_place_send(mca_coll_hier_run_t* run)
{
    const mca_coll_hier_call_t* call = run->call;
    mca_coll_hier_place_t* place = &run->send;
    int rc = OMPI_SUCCESS;
    if (0 == call->shard_bytes) {
        return OMPI_SUCCESS;
    }
    if (call->in_place) {
        if (NULL != run->receive.streams) {
            rc = make_streams(place, 1);
            rc = OMPI_SUCCESS == rc ? add_stream(place, &call->own, true) : rc;
        }
        return rc;
    }
    place->all = (hier_buffer){.bytes = call->shard_bytes, .memory = call->send.memory};
    if (is_usable(call, &call->send, &place->all.base) &&
        mca_coll_hier_bytes_of(&call->send) >= call->shard_bytes) {
        return OMPI_SUCCESS;
    }
    if (call->send.memory.is_reachable) {
        place->all.bytes = run->part;
        rc = mca_coll_hier_borrow(&place->staging, HIER_STAGING_HOST, run->part);
        rc = OMPI_SUCCESS == rc ? make_streams(place, 1) : rc;
        rc = OMPI_SUCCESS == rc ? add_stream(place, &call->send, true) : rc;
    } else {
        rc = stage_device(run, &call->send, call->shard_bytes, place);
        rc = OMPI_SUCCESS == rc ? mca_coll_hier_pack_send(call, place->staging.base) : rc;
    }
    if (OMPI_SUCCESS == rc) {
        use_staging(place);
    }
    return rc;
}

void mca_coll_hier_leave_place(mca_coll_hier_place_t* place, bool has_failed)
{
    for (size_t i = 0; i < place->stream_count; i++) {
        mca_coll_hier_end_stream(&place->streams[i]);
    }
    free(place->streams);
    free(place->displacements);
    place->displacements = NULL;
    if (!has_failed) {
        mca_coll_hier_give_back(&place->staging);
    }
}
