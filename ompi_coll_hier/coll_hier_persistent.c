/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_persistent.h"

#include "ompi/datatype/ompi_datatype.h"

/* The persistent requests that have teams. An application may forget to free some. */
static mca_coll_hier_request_t* owners;
static opal_mutex_t lock;

static void drop_own_team(mca_coll_hier_request_t* request)
{
    mca_coll_hier_request_t** place = &owners;
    opal_mutex_lock(&lock);
    while (NULL != *place && request != *place) {
        place = &(*place)->next_owner;
    }
    if (NULL != *place) {
        *place = request->next_owner;
    }
    opal_mutex_unlock(&lock);
    hier_team_destroy(request->own_team);
    request->own_team = NULL;
}

void mca_coll_hier_open_persistent(void) { OBJ_CONSTRUCT(&lock, opal_mutex_t); }

void mca_coll_hier_close_persistent(void)
{
    while (NULL != owners) {
        drop_own_team(owners);
    }
    OBJ_DESTRUCT(&lock);
}

/* Open MPI keeps the datatypes of nonblocking calls, but not those of persistent ones. */
static void keep_type(struct ompi_datatype_t* type)
{
    if (!ompi_datatype_is_predefined(type)) {
        OBJ_RETAIN(type);
    }
}

static void let_type_go(struct ompi_datatype_t* type)
{
    if (!ompi_datatype_is_predefined(type)) {
        OBJ_RELEASE(type);
    }
}

static void keep_types(const mca_coll_hier_call_t* call)
{
    keep_type(call->receive.type);
    if (!call->in_place) {
        keep_type(call->send.type);
    }
}

static void let_types_go(const mca_coll_hier_call_t* call)
{
    let_type_go(call->receive.type);
    if (!call->in_place) {
        let_type_go(call->send.type);
    }
}

/* MPI allows this only for a call that is over. */
static int free_persistent(ompi_request_t** handle)
{
    mca_coll_hier_request_t* request = (mca_coll_hier_request_t*)*handle;
    if (!mca_coll_hier_is_complete(request)) {
        return MPI_ERR_REQUEST;
    }
    mca_coll_hier_settle(request);
    drop_own_team(request);
    mca_coll_hier_drop_call(request);
    let_types_go(&request->call);
    OBJ_RELEASE(request->call.comm);
    return mca_coll_hier_free_request(handle);
}

static int start_persistent(size_t count, ompi_request_t** handles)
{
    for (size_t i = 0; i < count; i++) {
        mca_coll_hier_request_t* request = (mca_coll_hier_request_t*)handles[i];
        mca_coll_hier_settle(request);
        mca_coll_hier_start(request);
    }
    return OMPI_SUCCESS;
}

/* Waits for the other ranks. The request has no team if none can serve it. */
static int make_own_team(mca_coll_hier_request_t* request)
{
    const mca_coll_hier_call_t* call = &request->call;
    mca_coll_hier_module_t* module = call->module;
    /* How the set-up of the communicator's team ends decides here, too. */
    mca_coll_hier_wait_for_turn(module);
    if (MCA_COLL_HIER_BROKEN == module->state) {
        return mca_coll_hier_error_of_call(call, HIER_ERR_PEER);
    }
    if (MCA_COLL_HIER_REFUSED == module->state) {
        return OMPI_SUCCESS;
    }
    const int code = mca_coll_hier_build_own_team(module, call->comm, &request->own_team);
    if (HIER_ERR_PEER == code) {
        module->state = MCA_COLL_HIER_BROKEN;
        return mca_coll_hier_error_of_call(call, code);
    }
    if (HIER_OK != code) { /* and any other team would be refused, too */
        module->state =
            MCA_COLL_HIER_FRESH == module->state ? MCA_COLL_HIER_REFUSED : module->state;
        return OMPI_SUCCESS;
    }
    opal_mutex_lock(&lock);
    request->next_owner = owners;
    owners = request;
    opal_mutex_unlock(&lock);
    if (call->total > hier_team_max_bytes(request->own_team)) {
        drop_own_team(request);
    }
    return OMPI_SUCCESS;
}

int mca_coll_hier_make_persistent(mca_coll_hier_request_t* request, ompi_request_t** handle)
{
    const mca_coll_hier_call_t* call = &request->call;
    mca_coll_hier_begin_request(request, true);
    keep_types(call);
    request->super.super.req_start = start_persistent;
    request->super.super.req_free = free_persistent;
    *handle = &request->super.super;
    const bool is_for_team = 1 < ompi_comm_size(call->comm) && 0 < call->total &&
                             call->total >= mca_coll_hier_component.min_bytes;
    const int rc = is_for_team ? make_own_team(request) : OMPI_SUCCESS;
    if (OMPI_SUCCESS != rc) {
        (void)free_persistent(handle);
    }
    return rc;
}
