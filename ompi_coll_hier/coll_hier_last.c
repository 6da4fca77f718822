/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_last.h"

#include <stdlib.h>

/* What an application names: all elements of a buffer. */
typedef struct {
    const void* base;
    size_t count;
    struct ompi_datatype_t* type;
} arguments_t;

static bool are_same(const mca_coll_hier_elements_t* last, arguments_t now)
{
    return last->count == now.count && last->type == now.type;
}

/* Are these the arguments of the last call, but for its blocks? In place, the base says so, and the other send arguments
 * mean nothing. */
static bool is_prepared(const mca_coll_hier_last_t* last,
                        const mca_coll_hier_collective_t* collective, arguments_t send,
                        arguments_t receive)
{
    const mca_coll_hier_call_t* call = &last->call;
    return last->run.is_prepared && collective == call->collective &&
           receive.base == call->receive.base && send.base == call->send.base &&
           are_same(&call->receive, receive) && (call->in_place || are_same(&call->send, send));
}

static void copy_memory(const mca_coll_hier_call_t* from, mca_coll_hier_call_t* to)
{
    to->receive.memory = from->receive.memory;
    to->send.memory = from->send.memory;
    to->own = from->own;
    to->own.copies = to->send.copies;
}

/* Is nothing to be looked for? */
static bool is_all_host(const mca_coll_hier_call_t* last)
{
    const void* const addresses[] = {last->receive.base, last->send.base};
    return mca_coll_hier_is_on_host(last) && hier_memory_is_host(last->in_place ? 1 : 2, addresses);
}

bool mca_coll_hier_is_last(const mca_coll_hier_last_t* last,
                           const mca_coll_hier_collective_t* collective,
                           const mca_coll_hier_buffer_t* send,
                           const mca_coll_hier_buffer_t* receive)
{
    if (!last->run.is_prepared) { /* there may have been no call */
        return false;
    }
    const size_t blocks = (size_t)ompi_comm_size(last->call.comm);
    return is_prepared(
               last, collective, (arguments_t){send->base, (size_t)send->count, send->type},
               (arguments_t){receive->base, (size_t)receive->count * blocks, receive->type}) &&
           is_all_host(&last->call);
}

static bool has_same_memory(const mca_coll_hier_last_t* last, mca_coll_hier_call_t* call)
{
    if (is_all_host(&last->call)) {
        copy_memory(&last->call, call);
        return true;
    }
    mca_coll_hier_find_memory(call);
    return mca_coll_hier_is_same_memory(&last->call.receive.memory, &call->receive.memory) &&
           (call->in_place ||
            mca_coll_hier_is_same_memory(&last->call.send.memory, &call->send.memory));
}

mca_coll_hier_last_t* mca_coll_hier_last_of(const mca_coll_hier_call_t* call,
                                            mca_coll_hier_last_t** place)
{
    /* Of other datatypes the same handle may mean something else the next time. */
    if (!mca_coll_hier_has_predefined_types(call)) {
        return NULL;
    }
    if (NULL == *place) {
        *place = (mca_coll_hier_last_t*)calloc(1, sizeof **place);
    }
    return *place;
}

bool mca_coll_hier_keep_call(mca_coll_hier_last_t* last, const mca_coll_hier_call_t* call)
{
    last->run.is_prepared = false;
    last->call = *call;
    if (NULL == call->shards) {
        return true;
    }
    last->call.shards = &last->shards;
    return mca_coll_hier_copy_blocks(call->shards, &last->shards,
                                     (size_t)ompi_comm_size(call->comm));
}

void mca_coll_hier_drop_last(mca_coll_hier_last_t** last)
{
    if (NULL != *last) {
        free((*last)->shards.packed);
    }
    free(*last);
    *last = NULL;
}

bool mca_coll_hier_is_again(const mca_coll_hier_last_t* last, mca_coll_hier_call_t* call)
{
    const mca_coll_hier_elements_t *send = &call->send, *receive = &call->receive;
    return is_prepared(last, call->collective, (arguments_t){send->base, send->count, send->type},
                       (arguments_t){receive->base, receive->count, receive->type}) &&
           mca_coll_hier_have_same_blocks(&last->call, call) && has_same_memory(last, call);
}

/* ---- nonblocking calls. One thread at a time starts those of a communicator. */

bool mca_coll_hier_is_last_started(const mca_coll_hier_module_t* module,
                                   const mca_coll_hier_collective_t* collective,
                                   const mca_coll_hier_buffer_t* send,
                                   const mca_coll_hier_buffer_t* receive)
{
    const mca_coll_hier_last_t* last = module->last_started;
    return NULL != last && MCA_COLL_HIER_READY == module->state &&
           !__atomic_load_n(&last->is_used, __ATOMIC_ACQUIRE) &&
           mca_coll_hier_is_next_turn(module) &&
           mca_coll_hier_is_last(last, collective, send, receive);
}

void mca_coll_hier_take_last(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    mca_coll_hier_last_t* last = mca_coll_hier_last_of(call, &call->module->last_started);
    if (NULL == last || __atomic_load_n(&last->is_used, __ATOMIC_ACQUIRE)) {
        mca_coll_hier_find_memory(call);
        return;
    }
    last->is_used = request->uses_last = call->is_repeated = true;
    if (mca_coll_hier_is_again(last, call)) {
        request->run = last->run;
        request->run.call = call;
    } else {
        mca_coll_hier_find_memory(call);
    }
}

void mca_coll_hier_start_as_last(mca_coll_hier_request_t* request)
{
    mca_coll_hier_last_t* last = request->call.module->last_started;
    mca_coll_hier_start_run(&request->run, &request->call, last->request);
    const bool is_kept = mca_coll_hier_keep_call(last, &request->call);
    last->run = request->run;
    last->run.receive.displacements = NULL; /* the request's own, and only its start needs them */
    last->request = last->run.is_prepared ? last->run.request : last->request;
    last->run.is_prepared = last->run.is_prepared && is_kept;
}

void mca_coll_hier_leave_last(mca_coll_hier_request_t* request)
{
    if (request->uses_last) {
        request->uses_last = false;
        __atomic_store_n(&request->call.module->last_started->is_used, false, __ATOMIC_RELEASE);
    }
}
