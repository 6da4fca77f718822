/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts calls that return before they have run. What is not over at once goes to those that have been started
 * (coll_hier_started.c). */
#include "coll_hier_last.h"

/* Does this thread move all the bytes that the rank sends? */
static bool is_moved_here(const mca_coll_hier_call_t* call)
{
    return call->receive.memory.is_reachable && call->send.memory.is_reachable &&
           0 == mca_coll_hier_component.config.progress_thread;
}

/* Small blocks in memory of the host are there within a microsecond, if the other ranks are. Then no pass of
 * opal_progress() is needed. The bytes of larger blocks have to be copied by this thread, now or later, and other ranks
 * wait for them. But a thread that has the lock does not copy them. True: the call is over. */
static bool is_over_soon(mca_coll_hier_request_t* request, bool has_lock)
{
    enum { small_total = 65536, max_passes = 64 };
    const mca_coll_hier_call_t* call = &request->call;
    const bool is_small = call->total <= small_total;
    if (MCA_COLL_HIER_WITH_TEAM != request->state || !is_moved_here(call) ||
        (!is_small && has_lock)) {
        return false;
    }
    bool is_over = false;
    int idle = is_small ? 16 : 4; /* passes in which nothing moves */
    for (int i = 0; i < max_passes && 0 < idle && !is_over; i++) {
        idle -= 0 == hier_progress_team(call->team) ? 1 : 0;
        is_over = mca_coll_hier_move_request(request);
    }
    return is_over;
}

static bool move_at_once(mca_coll_hier_request_t* request, bool has_lock)
{
    return mca_coll_hier_move_request(request) || is_over_soon(request, has_lock);
}

/* Is what has been prepared still good? Between two starts an application may free device memory, and get other memory
 * at the same address. Such a request is not prepared again, which is slower but as good. */
static bool is_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    const hier_memory receive = call->receive.memory, send = call->send.memory;
    if (request->run.is_prepared &&
        (HIER_MEMORY_HOST != receive.kind || HIER_MEMORY_HOST != send.kind)) {
        mca_coll_hier_find_memory(call);
        request->run.is_prepared = call->is_repeated =
            mca_coll_hier_is_same_memory(&receive, &call->receive.memory) &&
            mca_coll_hier_is_same_memory(&send, &call->send.memory);
    }
    return request->run.is_prepared;
}

/* The call concerns its own team alone, and no other thread sees it before it is on the list. True: it is over. */
static bool start_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    const bool is_moved_first = is_moved_here(call);
    call->in_background = !is_moved_first;
    if (move_at_once(request, false)) {
        return true;
    }
    if (is_moved_first) {
        call->in_background = true;
        hier_hand_over(call->team);
    }
    mca_coll_hier_lock_started();
    mca_coll_hier_add_started(request);
    mca_coll_hier_unlock_started();
    return false;
}

/* True: the call is over. */
static bool start_unprepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_module_t* module = request->call.module;
    const bool is_persistent = request->super.super.req_persistent;
    request->call.in_background = true;
    if (is_persistent) {
        mca_coll_hier_find_memory(&request->call);
    } else {
        mca_coll_hier_take_last(request);
    }
    mca_coll_hier_lock_started();
    if (!is_persistent) {
        request->is_in_line = true;
        request->turn = module->turns++;
        if (MCA_COLL_HIER_FRESH == module->state) {
            (void)mca_coll_hier_choose_started(&request->call); /* begins the set-up */
        }
    }
    const bool is_over = move_at_once(request, true);
    if (!is_over) {
        mca_coll_hier_add_started(request);
    }
    mca_coll_hier_unlock_started();
    return is_over;
}

void mca_coll_hier_start(mca_coll_hier_request_t* request)
{
    const mca_coll_hier_call_t* call = &request->call;
    request->super.super.req_complete = REQUEST_PENDING;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->state = MCA_COLL_HIER_WAITS;
    request->rc = OMPI_SUCCESS;
    request->is_open = true;
    bool is_over = true;
    if (0 == call->total) { /* on all ranks: nothing to do */
        request->state = MCA_COLL_HIER_ENDED;
        mca_coll_hier_count_served(call);
    } else {
        is_over = is_prepared(request) ? start_prepared(request) : start_unprepared(request);
    }
    if (is_over) {
        mca_coll_hier_note_unattended();
        mca_coll_hier_complete(request);
    }
}

int mca_coll_hier_start_once(mca_coll_hier_request_t* request, ompi_request_t** handle)
{
    mca_coll_hier_attend();
    mca_coll_hier_begin_request(request, false);
    *handle = &request->super.super;
    mca_coll_hier_start(request);
    return OMPI_SUCCESS;
}
