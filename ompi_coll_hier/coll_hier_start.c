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

/* Between two starts an application may free device memory, and get other memory at the same address. */
static bool finds_same_memory(mca_coll_hier_call_t* call)
{
    const hier_memory receive = call->receive.memory, send = call->send.memory;
    mca_coll_hier_find_memory(call);
    return mca_coll_hier_is_same_memory(&receive, &call->receive.memory) &&
           mca_coll_hier_is_same_memory(&send, &call->send.memory);
}

/* Is what has been prepared still good? If not, the request is not prepared again, which is slower but as good. */
static bool is_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    if (request->run.is_prepared && !mca_coll_hier_is_on_host(call)) {
        request->run.is_prepared = call->is_repeated = finds_same_memory(call);
    }
    return request->run.is_prepared;
}

/* Its run has been started again, and no other thread sees it before it is on the list. True: the call is over. */
static bool go_on_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    request->state = MCA_COLL_HIER_WITH_TEAM;
    if (HIER_OK == request->run.code) {
        /* What is prepared has no staging and no parts, so nothing is left to do. */
        request->rc = mca_coll_hier_size_mismatch(call);
        mca_coll_hier_leave_last(request);
        return true;
    }
    /* Another thread may be at the call already. To ask about it now would only disturb that one. */
    const bool is_elsewhere = HIER_IN_PROGRESS == request->run.code && call->in_background;
    if (!is_elsewhere && move_at_once(request, false)) {
        return true;
    }
    if (!call->in_background) {
        call->in_background = true;
        hier_hand_over(call->team);
    }
    mca_coll_hier_lock_started();
    mca_coll_hier_add_started(request);
    mca_coll_hier_unlock_started();
    return false;
}

/* Its team is its own, or no other call waits for its turn there. True: it is over. */
static bool start_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    call->in_background = !is_moved_here(call);
    mca_coll_hier_count_served(call);
    mca_coll_hier_start_run_again(&request->run);
    return go_on_prepared(request);
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

static void open_request(mca_coll_hier_request_t* request)
{
    request->super.super.req_complete = REQUEST_PENDING;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->rc = OMPI_SUCCESS;
    request->is_open = true;
}

static void end_start(mca_coll_hier_request_t* request, bool is_over)
{
    if (is_over) {
        mca_coll_hier_complete(request, true);
        mca_coll_hier_attend();
    }
}

void mca_coll_hier_start(mca_coll_hier_request_t* request)
{
    const mca_coll_hier_call_t* call = &request->call;
    bool is_over = true;
    open_request(request);
    request->state = MCA_COLL_HIER_WAITS;
    if (0 == call->total) { /* on all ranks: nothing to do */
        request->state = MCA_COLL_HIER_ENDED;
        mca_coll_hier_count_served(call);
    } else {
        is_over = is_prepared(request) ? start_prepared(request) : start_unprepared(request);
    }
    end_start(request, is_over);
}

int mca_coll_hier_start_once(mca_coll_hier_request_t* request, ompi_request_t** handle)
{
    mca_coll_hier_begin_request(request, false);
    *handle = &request->super.super;
    mca_coll_hier_start(request);
    return OMPI_SUCCESS;
}

/* For the call that the last one (coll_hier_last.h) repeats. NULL: the job ends. */
static mca_coll_hier_request_t* take_up_last(mca_coll_hier_last_t* last)
{
    mca_coll_hier_request_t* request = mca_coll_hier_new_request(last->call.comm);
    if (NULL != request) {
        request->call = last->call;
        request->run = last->run;
        request->run.call = &request->call;
        mca_coll_hier_begin_request(request, false);
        request->call.own.copies = request->call.send.copies;
        last->is_used = request->uses_last = true;
        open_request(request);
    }
    return request;
}

/* True: the call is over. */
static bool ends_in_start(mca_coll_hier_last_t* last)
{
    mca_coll_hier_count_served(&last->call);
    last->call.in_background = false;
    last->run.call = &last->call;
    mca_coll_hier_start_run_again(&last->run);
    return HIER_OK == last->run.code && OMPI_SUCCESS == mca_coll_hier_size_mismatch(&last->call);
}

bool mca_coll_hier_start_again(mca_coll_hier_module_t* module,
                               const mca_coll_hier_collective_t* collective,
                               const mca_coll_hier_buffer_t* send,
                               const mca_coll_hier_buffer_t* receive, ompi_request_t** handle,
                               int* rc)
{
    if (!mca_coll_hier_is_last_started(module, collective, send, receive)) {
        return false;
    }
    mca_coll_hier_last_t* last = module->last_started;
    const bool is_begun = is_moved_here(&last->call);
    *rc = OMPI_SUCCESS;
    if (is_begun && ends_in_start(last)) {
        (void)mca_coll_hier_reserve_tag(last->call.comm);
        *handle = &ompi_request_empty; /* Open MPI's own, which is always over */
        mca_coll_hier_attend();
        return true;
    }
    mca_coll_hier_request_t* request = take_up_last(last);
    if (NULL == request) {
        *rc = OMPI_ERR_OUT_OF_RESOURCE;
        return true;
    }
    *handle = &request->super.super;
    request->call.in_background = !is_begun;
    end_start(request, is_begun ? go_on_prepared(request) : start_prepared(request));
    return true;
}
