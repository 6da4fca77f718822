/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the calls that have been started. */
#include "coll_hier_last.h"

#include <sched.h>

#include "ompi/errhandler/errcode-internal.h"
#include "opal/runtime/opal_progress.h"

/* All started calls of the process, in the order of their starts. */
static opal_list_t running;
static int running_count; /* to be read without the lock */
/* One thread at a time moves started calls; the team's data moves in any thread. */
static opal_mutex_t lock;

void mca_coll_hier_open_started(void)
{
    OBJ_CONSTRUCT(&lock, opal_mutex_t);
    OBJ_CONSTRUCT(&running, opal_list_t);
}

void mca_coll_hier_close_started(void)
{
    OBJ_DESTRUCT(&running);
    OBJ_DESTRUCT(&lock);
}

void mca_coll_hier_lock_started(void) { opal_mutex_lock(&lock); }

void mca_coll_hier_unlock_started(void) { opal_mutex_unlock(&lock); }

/* ---- with the lock */

static void pass_turn(mca_coll_hier_request_t* request)
{
    mca_coll_hier_module_t* module = request->call.module;
    if (request->is_in_line) {
        request->is_in_line = false;
        __atomic_store_n(&module->next_turn, module->next_turn + 1, __ATOMIC_RELEASE);
    }
}

/* Is it this call's turn, and is it known who serves it? */
static bool may_begin(const mca_coll_hier_request_t* request)
{
    mca_coll_hier_module_t* module = request->call.module;
    if (!request->is_in_line) {
        return true;
    }
    if (request->turn != module->next_turn) {
        return false;
    }
    if (MCA_COLL_HIER_IN_SETUP == module->state) {
        mca_coll_hier_move_team(module, request->call.comm);
    }
    return MCA_COLL_HIER_IN_SETUP != module->state;
}

static mca_coll_hier_server_t choose(mca_coll_hier_request_t* request)
{
    if (!request->super.super.req_persistent) {
        request->call.team = request->call.module->team;
        return mca_coll_hier_choose_started(&request->call);
    }
    request->call.team = request->own_team;
    return NULL == request->own_team ? MCA_COLL_HIER_BY_FALLBACK : MCA_COLL_HIER_BY_TEAM;
}

static void begin(mca_coll_hier_request_t* request)
{
    const mca_coll_hier_call_t* call = &request->call;
    switch (choose(request)) {
    case MCA_COLL_HIER_BY_TEAM:
        mca_coll_hier_count_served(call);
        request->state = MCA_COLL_HIER_WITH_TEAM;
        if (request->run.is_prepared) {
            mca_coll_hier_start_run_again(&request->run);
        } else if (request->uses_last) {
            mca_coll_hier_start_as_last(request);
        } else {
            mca_coll_hier_start_run(&request->run, call, NULL);
        }
        break;
    case MCA_COLL_HIER_BY_FALLBACK:
        mca_coll_hier_count_fallback(call);
        request->state = MCA_COLL_HIER_WITH_MESSAGES;
        mca_coll_hier_start_messages(&request->messages, call, request->tag);
        break;
    case MCA_COLL_HIER_BY_NOBODY:
        request->state = MCA_COLL_HIER_ENDED;
        request->rc = mca_coll_hier_error_of_call(call, HIER_ERR_PEER);
        break;
    }
}

bool mca_coll_hier_move_request(mca_coll_hier_request_t* request)
{
    bool is_over = true;
    if (MCA_COLL_HIER_WAITS == request->state) {
        if (!may_begin(request)) {
            return false;
        }
        begin(request);
    }
    switch (request->state) {
    case MCA_COLL_HIER_WITH_TEAM:
        is_over = mca_coll_hier_move_run(&request->run);
        request->rc = request->run.rc;
        if (!mca_coll_hier_has_started(&request->run)) {
            return false;
        }
        break;
    case MCA_COLL_HIER_WITH_MESSAGES:
        is_over = mca_coll_hier_move_messages(&request->messages);
        request->rc = request->messages.rc;
        break;
    case MCA_COLL_HIER_WAITS:
    case MCA_COLL_HIER_ENDED:
        break;
    }
    pass_turn(request);
    if (is_over) {
        mca_coll_hier_leave_last(request);
    }
    return is_over;
}

void mca_coll_hier_add_started(mca_coll_hier_request_t* request)
{
    opal_list_append(&running, (opal_list_item_t*)request);
    request->is_listed = true;
    __atomic_add_fetch(&request->call.module->running, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&running_count, running_count + 1, __ATOMIC_RELAXED);
}

static void take_off_list(mca_coll_hier_request_t* request)
{
    opal_list_remove_item(&running, (opal_list_item_t*)request);
    request->is_listed = false;
    __atomic_sub_fetch(&request->call.module->running, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&running_count, running_count - 1, __ATOMIC_RELAXED);
}

/* ---- without the lock */

/* A thread that waits already runs the progress loop, which completes the request then. It does so, too, where Open MPI,
 * without threads, has overwritten what this writes. */
void mca_coll_hier_complete_early(void* request)
{
    void* pending = REQUEST_PENDING;
    (void)__atomic_compare_exchange_n(mca_coll_hier_state_of(request), &pending, REQUEST_COMPLETED,
                                      false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* `in_start`: of the call, so that nobody waits in Open MPI, and there is nobody to wake. */
static void complete_now(mca_coll_hier_request_t* request, bool in_start)
{
    request->super.super.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(request->rc);
    if (OMPI_SUCCESS != request->rc && OMPI_COMM_IS_FREED(request->call.comm)) {
        /* Open MPI looks for its error handler. */
        request->super.super.req_mpi_object.comm = &ompi_mpi_comm_world.comm;
    }
    (void)ompi_request_complete(&request->super.super, !in_start);
}

/* Afterwards the application may have freed the request, in another thread. It may have freed the communicator before:
 * then that goes away here. */
void mca_coll_hier_complete(mca_coll_hier_request_t* request, bool in_start)
{
    struct ompi_communicator_t* comm = request->call.comm;
    const bool is_persistent = request->super.super.req_persistent;
    if (!is_persistent) {
        mca_coll_hier_drop_call(request);
    }
    const bool is_complete = mca_coll_hier_is_complete(request);
    __atomic_store_n(&request->is_open, false, __ATOMIC_RELEASE);
    if (!is_complete) {
        complete_now(request, in_start);
    }
    if (!is_persistent) {
        OBJ_RELEASE(comm);
    }
}

bool mca_coll_hier_has_requests(void)
{
    return 0 < __atomic_load_n(&running_count, __ATOMIC_RELAXED);
}

int mca_coll_hier_progress_requests(void)
{
    /* A thread that is here already comes again when it waits inside. */
    if (!mca_coll_hier_has_requests() || 0 != opal_mutex_trylock(&lock)) {
        return 0;
    }
    opal_list_t over;
    opal_list_item_t *item, *next;
    OBJ_CONSTRUCT(&over, opal_list_t);
    for (item = opal_list_get_first(&running); opal_list_get_end(&running) != item; item = next) {
        next = opal_list_get_next(item);
        if (mca_coll_hier_move_request((mca_coll_hier_request_t*)item)) {
            take_off_list((mca_coll_hier_request_t*)item);
            opal_list_append(&over, item);
        }
    }
    const int count = (int)opal_list_get_size(&over);
    opal_mutex_unlock(&lock);
    while (NULL != (item = opal_list_remove_first(&over))) {
        mca_coll_hier_complete((mca_coll_hier_request_t*)item, false);
    }
    OBJ_DESTRUCT(&over);
    return count;
}

/* Of this thread, which have ended without a pass of opal_progress(). */
static _Thread_local unsigned unattended;

void mca_coll_hier_attend(void)
{
    enum { most = 16 };
    if (most <= ++unattended) {
        unattended = 0;
        opal_progress();
    }
}

/* Whoever has completed the request early is about to end its run, and a progress loop that has taken it off the list is
 * about to be done with it. At worst each wait takes as long as another thread's pass over the started calls. */
void mca_coll_hier_settle(mca_coll_hier_request_t* request)
{
    if (!__atomic_load_n(&request->is_open, __ATOMIC_ACQUIRE)) {
        return;
    }
    opal_mutex_lock(&lock);
    const bool is_left = request->is_listed;
    if (is_left) {
        while (!mca_coll_hier_move_request(request)) {
            (void)sched_yield();
        }
        take_off_list(request);
    }
    opal_mutex_unlock(&lock);
    if (is_left) {
        mca_coll_hier_complete(request, false);
        mca_coll_hier_attend();
    }
    while (__atomic_load_n(&request->is_open, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
}

bool mca_coll_hier_is_next_turn(const mca_coll_hier_module_t* module)
{
    return module->turns == __atomic_load_n(&module->next_turn, __ATOMIC_ACQUIRE);
}

void mca_coll_hier_wait_for_turn(const mca_coll_hier_module_t* module)
{
    while (!mca_coll_hier_is_next_turn(module)) {
        opal_progress();
    }
}

void mca_coll_hier_forget_requests(const mca_coll_hier_module_t* module)
{
    opal_list_item_t *item, *next;
    /* A call that runs keeps its communicator. So there is none, but when Open MPI ends; and this may be a thread
     * that has the lock. */
    if (0 == __atomic_load_n(&module->running, __ATOMIC_RELAXED)) {
        return;
    }
    opal_mutex_lock(&lock);
    for (item = opal_list_get_first(&running); opal_list_get_end(&running) != item; item = next) {
        next = opal_list_get_next(item);
        if (module == ((mca_coll_hier_request_t*)item)->call.module) {
            opal_list_remove_item(&running, item);
            __atomic_store_n(&running_count, running_count - 1, __ATOMIC_RELAXED);
        }
    }
    opal_mutex_unlock(&lock);
}
