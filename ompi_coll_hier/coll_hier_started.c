/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the calls that have been started. */
#include "coll_hier_request.h"

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
        mca_coll_hier_count(call, call->collective->calls);
        request->state = MCA_COLL_HIER_WITH_TEAM;
        if (request->run.is_prepared) {
            mca_coll_hier_start_run_again(&request->run);
        } else {
            mca_coll_hier_start_run(&request->run, call);
        }
        break;
    case MCA_COLL_HIER_BY_FALLBACK:
        mca_coll_hier_count(call, call->collective->fallbacks);
        request->state = MCA_COLL_HIER_WITH_MESSAGES;
        mca_coll_hier_start_messages(&request->messages, call, request->tag);
        break;
    case MCA_COLL_HIER_BY_NOBODY:
        request->state = MCA_COLL_HIER_ENDED;
        request->rc = mca_coll_hier_error_of_call(call, HIER_ERR_PEER);
        break;
    }
}

/* True: the call is over. */
static bool move(mca_coll_hier_request_t* request)
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
    return is_over;
}

/* ---- without the lock */

/* Afterwards the application may have freed the request, in another thread. It may have freed the communicator before:
 * then that goes away here. */
static void complete(mca_coll_hier_request_t* request)
{
    struct ompi_communicator_t* comm = request->call.comm;
    const bool is_persistent = request->super.super.req_persistent;
    if (!is_persistent) {
        mca_coll_hier_drop_call(request);
    }
    request->super.super.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(request->rc);
    if (OMPI_SUCCESS != request->rc && OMPI_COMM_IS_FREED(comm)) {
        /* Open MPI looks for its error handler. */
        request->super.super.req_mpi_object.comm = &ompi_mpi_comm_world.comm;
    }
    (void)ompi_request_complete(&request->super.super, true);
    if (!is_persistent) {
        OBJ_RELEASE(comm);
    }
}

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
        is_over = move(request);
    }
    return is_over;
}

static bool move_at_once(mca_coll_hier_request_t* request, bool has_lock)
{
    return move(request) || is_over_soon(request, has_lock);
}

/* With the lock. */
static void add_running(mca_coll_hier_request_t* request)
{
    opal_list_append(&running, (opal_list_item_t*)request);
    __atomic_add_fetch(&request->call.module->running, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&running_count, running_count + 1, __ATOMIC_RELAXED);
}

static bool is_same(const hier_memory* a, const hier_memory* b)
{
    return HIER_OK == b->error && a->kind == b->kind && a->base == b->base &&
           a->length == b->length && a->id == b->id;
}

/* Is what has been prepared still good? Between two starts an application may free device memory, and get other memory
 * at the same address. */
static bool is_prepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_call_t* call = &request->call;
    const hier_memory receive = call->receive.memory, send = call->send.memory;
    if (request->run.is_prepared &&
        (HIER_MEMORY_HOST != receive.kind || HIER_MEMORY_HOST != send.kind)) {
        mca_coll_hier_find_memory(call);
        request->run.is_prepared =
            is_same(&receive, &call->receive.memory) && is_same(&send, &call->send.memory);
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
    opal_mutex_lock(&lock);
    add_running(request);
    opal_mutex_unlock(&lock);
    return false;
}

/* True: the call is over. */
static bool start_unprepared(mca_coll_hier_request_t* request)
{
    mca_coll_hier_module_t* module = request->call.module;
    mca_coll_hier_find_memory(&request->call);
    opal_mutex_lock(&lock);
    if (!request->super.super.req_persistent) {
        request->is_in_line = true;
        request->turn = module->turns++;
        if (MCA_COLL_HIER_FRESH == module->state) {
            (void)mca_coll_hier_choose_started(&request->call); /* begins the set-up */
        }
    }
    const bool is_over = move_at_once(request, true);
    if (!is_over) {
        add_running(request);
    }
    opal_mutex_unlock(&lock);
    return is_over;
}

void mca_coll_hier_start(mca_coll_hier_request_t* request)
{
    const mca_coll_hier_call_t* call = &request->call;
    request->super.super.req_complete = REQUEST_PENDING;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->state = MCA_COLL_HIER_WAITS;
    request->rc = OMPI_SUCCESS;
    bool is_over = true;
    if (0 == call->total) { /* on all ranks: nothing to do */
        request->state = MCA_COLL_HIER_ENDED;
        mca_coll_hier_count(call, call->collective->calls);
    } else {
        is_over = is_prepared(request) ? start_prepared(request) : start_unprepared(request);
    }
    if (is_over) {
        complete(request);
    }
}

int mca_coll_hier_start_once(mca_coll_hier_request_t* request, ompi_request_t** handle)
{
    mca_coll_hier_begin_request(request, false);
    *handle = &request->super.super;
    mca_coll_hier_start(request);
    return OMPI_SUCCESS;
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
        if (move((mca_coll_hier_request_t*)item)) {
            opal_list_remove_item(&running, item);
            opal_list_append(&over, item);
            __atomic_sub_fetch(&((mca_coll_hier_request_t*)item)->call.module->running, 1,
                               __ATOMIC_RELAXED);
        }
    }
    const int count = (int)opal_list_get_size(&over);
    __atomic_store_n(&running_count, running_count - count, __ATOMIC_RELAXED);
    opal_mutex_unlock(&lock);
    while (NULL != (item = opal_list_remove_first(&over))) {
        complete((mca_coll_hier_request_t*)item);
    }
    OBJ_DESTRUCT(&over);
    return count;
}

void mca_coll_hier_wait_for_turn(const mca_coll_hier_module_t* module)
{
    while (module->turns != __atomic_load_n(&module->next_turn, __ATOMIC_ACQUIRE)) {
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
