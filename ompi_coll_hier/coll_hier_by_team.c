/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call on the communicator's team. A buffer that the team cannot work on is staged. */
#include "coll_hier_call.h"

#include "opal/runtime/opal_progress.h"

/* A small call is over before opal_progress() has asked all of Open MPI's components whether they have
 * something to do. But a program that makes no other calls needs that, too. So every fourth pass goes
 * to opal_progress(), counted over all calls. */
static void progress(hier_team* team)
{
    enum { share = 4 };
    static unsigned calls = 0; /* of all threads */
    if (0 == __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % share) {
        opal_progress();
    } else {
        (void)hier_progress_team(team);
    }
}

static int run(const mca_coll_hier_call_t* call, const hier_call* args)
{
    hier_request* request;
    int rc = hier_start(call->module->team, args, &request);
    while (HIER_IN_PROGRESS == rc) {
        progress(call->module->team);
        mca_coll_hier_end_if_broken(call);
        rc = hier_test(request);
    }
    return mca_coll_hier_error_of_call(call, rc);
}

/* Can the team work on these elements where they are? Then they start at `start`. */
static bool is_usable(const mca_coll_hier_call_t* call, const mca_coll_hier_elements_t* elements,
                      void** start)
{
    ptrdiff_t offset;
    const bool is_usable =
        mca_coll_hier_is_dense(elements->type, elements->count, &offset) &&
        (elements->memory.is_reachable || hier_team_takes_device_memory(call->module->team));
    *start = mca_coll_hier_at(elements->base, offset);
    return is_usable;
}

/* The staging of one buffer. */
typedef struct {
    mca_coll_hier_staging_t* staging; /* NULL: the team works on the buffer itself */
    mca_coll_hier_staging_t lent;
} staged_t;

/* Devices reach each other's memory faster than the host's memory. But on NVIDIA a kernel of the driver packs
 * inside a device, and for small blocks it takes longer than a copy engine. So device memory is borrowed
 * only where few large copies pack the elements. */
static void choose_staging(const mca_coll_hier_call_t* call,
                           const mca_coll_hier_elements_t* elements, size_t bytes,
                           mca_coll_hier_staging_t* kept, staged_t* staged)
{
    mca_coll_hier_module_t* module = call->module;
    staged->staging = kept;
    if (elements->memory.is_reachable || module->lacks_device_memory ||
        !hier_team_takes_device_memory(module->team) || bytes > HIER_MAX_LENT ||
        bytes > mca_coll_hier_bytes_of(elements) || !mca_coll_hier_is_regular(elements, bytes)) {
        return;
    }
    if (mca_coll_hier_borrow(&staged->lent, bytes, elements)) {
        staged->staging = &staged->lent;
    } else {
        module->lacks_device_memory = true;
    }
}

static void use_staging(const staged_t* staged, hier_buffer* buffer)
{
    buffer->base = staged->staging->base;
    if (NULL != buffer->base) { /* else the call fails */
        const void* const address = buffer->base;
        hier_memory* const memory = &buffer->memory;
        hier_memory_inspect(1, &address, &memory);
    }
}

static int place_receive(const mca_coll_hier_call_t* call, staged_t* staged, hier_buffer* recv)
{
    recv->bytes = call->total;
    recv->memory = call->receive.memory;
    if (is_usable(call, &call->receive, &recv->base)) {
        return OMPI_SUCCESS;
    }
    choose_staging(call, &call->receive, call->total, &call->module->receive_staging, staged);
    const int rc = mca_coll_hier_stage_receive(call, staged->staging);
    use_staging(staged, recv);
    return rc;
}

static int place_send(const mca_coll_hier_call_t* call, staged_t* staged, hier_buffer* send)
{
    send->bytes = call->shard_bytes;
    send->memory = call->send.memory;
    if (is_usable(call, &call->send, &send->base) &&
        mca_coll_hier_bytes_of(&call->send) >= call->shard_bytes) {
        return OMPI_SUCCESS;
    }
    choose_staging(call, &call->send, call->shard_bytes, &call->module->send_staging, staged);
    const int rc = mca_coll_hier_pack_send(call, staged->staging);
    use_staging(staged, send);
    return rc;
}

static hier_buffer own_block(const mca_coll_hier_call_t* call, const hier_buffer* recv)
{
    const size_t offset = call->shard_bytes * (size_t)ompi_comm_rank(call->comm);
    return (hier_buffer){(char*)recv->base + offset, call->shard_bytes, recv->memory};
}

static void abandon(staged_t* staged)
{
    if (NULL != staged->staging) {
        mca_coll_hier_abandon(staged->staging);
    }
}

static int by_team_staged(const mca_coll_hier_call_t* call, staged_t* send, staged_t* receive)
{
    hier_call args = {
        .collective = call->collective->id, .bytes = call->shard_bytes, .in_place = call->in_place};
    int rc = place_receive(call, receive, &args.recv);
    if (OMPI_SUCCESS == rc && !call->in_place) {
        rc = place_send(call, send, &args.send);
    } else if (OMPI_SUCCESS == rc) {
        args.send = own_block(call, &args.recv);
    }
    if (OMPI_SUCCESS != rc) {
        hier_refuse(call->module->team);
        return rc;
    }
    rc = run(call, &args);
    if (OMPI_SUCCESS != rc) {
        /* Transfers that are under way still read and write the staging memory. */
        abandon(send);
        abandon(receive);
    } else if (NULL != receive->staging) {
        rc = mca_coll_hier_unpack(receive->staging, call->total, &call->receive);
        if (OMPI_SUCCESS != rc) {
            hier_refuse(call->module->team); /* after an error this rank may make no more calls */
        }
    }
    return rc;
}

int mca_coll_hier_by_team(const mca_coll_hier_call_t* call)
{
    staged_t send = {.staging = NULL}, receive = {.staging = NULL};
    int rc = mca_coll_hier_error_of_call(call, hier_team_error(call->module->team));
    if (OMPI_SUCCESS == rc) {
        rc = by_team_staged(call, &send, &receive);
        mca_coll_hier_release(&send.lent);
        mca_coll_hier_release(&receive.lent);
    }
    return OMPI_SUCCESS == rc ? mca_coll_hier_size_mismatch(call) : rc;
}
