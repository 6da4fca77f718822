/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's side of a request. */
#include "coll_hier_request.h"

#include <stdlib.h>

#include "coll_hier_persistent.h"

/* Requests that wait for a call. */
static opal_list_t spare;
static opal_mutex_t lock;

void mca_coll_hier_drop_call(mca_coll_hier_request_t* request)
{
    mca_coll_hier_drop_copies(&request->send_copies);
    mca_coll_hier_drop_copies(&request->receive_copies);
    free(request->shards.packed);
    request->shards.packed = NULL;
}

int mca_coll_hier_free_request(ompi_request_t** handle)
{
    mca_coll_hier_request_t* request = (mca_coll_hier_request_t*)*handle;
    if (!mca_coll_hier_is_complete(request)) {
        return MPI_ERR_REQUEST;
    }
    mca_coll_hier_settle(request);
    /* Of a call that has completed early. Open MPI's Fortran bindings free copies of the counts there. */
    if (NULL != (*handle)->req_complete_cb) {
        (void)(*handle)->req_complete_cb(*handle);
    }
    OMPI_REQUEST_FINI(*handle);
    opal_mutex_lock(&lock);
    opal_list_prepend(&spare, (opal_list_item_t*)request);
    opal_mutex_unlock(&lock);
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int cancel_request(ompi_request_t* request, int flag)
{
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

static void construct(mca_coll_hier_request_t* request)
{
    ompi_request_t* base = &request->super.super;
    base->req_type = OMPI_REQUEST_COLL;
    base->req_cancel = cancel_request;
    request->shards.packed = NULL;
    request->send_copies = request->receive_copies = NULL;
}

static OBJ_CLASS_INSTANCE(mca_coll_hier_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

void mca_coll_hier_open_requests(void)
{
    OBJ_CONSTRUCT(&lock, opal_mutex_t);
    OBJ_CONSTRUCT(&spare, opal_list_t);
    mca_coll_hier_open_started();
    mca_coll_hier_open_persistent();
}

void mca_coll_hier_close_requests(void)
{
    mca_coll_hier_close_persistent();
    mca_coll_hier_close_started();
    opal_list_item_t* item;
    while (NULL != (item = opal_list_remove_first(&spare))) {
        OBJ_RELEASE(item);
    }
    OBJ_DESTRUCT(&spare);
    OBJ_DESTRUCT(&lock);
}

mca_coll_hier_request_t* mca_coll_hier_new_request(struct ompi_communicator_t* comm)
{
    opal_mutex_lock(&lock);
    mca_coll_hier_request_t* request = (mca_coll_hier_request_t*)opal_list_remove_first(&spare);
    opal_mutex_unlock(&lock);
    if (NULL == request) {
        request = OBJ_NEW(mca_coll_hier_request_t);
    }
    if (NULL == request) {
        (void)mca_coll_hier_lacks_memory(comm);
        return NULL;
    }
    request->own_team = NULL;
    request->run.is_prepared = false;
    return request;
}

/* May a thread of hier's own tell Open MPI that a call is over? Whoever frees a request or starts it again waits until the
 * progress loop is done with it. But a program reads the result before: of a persistent request, and after
 * MPI_Request_get_status. So only a processor may that keeps the order of loads. Other datatypes than predefined ones Open
 * MPI keeps for the call, until ompi_request_complete() lets them go. */
static bool may_complete_early(const mca_coll_hier_call_t* call)
{
#if defined(__x86_64__)
    return 0 != mca_coll_hier_component.config.progress_thread &&
           mca_coll_hier_has_predefined_types(call);
#else
    (void)call;
    return false;
#endif
}

int mca_coll_hier_reserve_tag(struct ompi_communicator_t* comm)
{
    return (int)ompi_coll_base_nbc_reserve_tags(comm, 1);
}

void mca_coll_hier_begin_request(mca_coll_hier_request_t* request, bool is_persistent)
{
    ompi_request_t* base = &request->super.super;
    OMPI_REQUEST_INIT(base, is_persistent);
    base->req_free = mca_coll_hier_free_request;
    base->req_status = ompi_status_empty;
    base->req_mpi_object.comm = request->call.comm;
    request->call.in_background = true;
    request->call.is_repeated = is_persistent;
    request->call.send.copies = &request->send_copies;
    request->call.receive.copies = &request->receive_copies;
    request->call.on_success =
        may_complete_early(&request->call) ? mca_coll_hier_complete_early : NULL;
    request->call.context = request;
    request->is_in_line = request->is_listed = request->is_open = request->uses_last = false;
    request->tag = mca_coll_hier_reserve_tag(request->call.comm);
    OBJ_RETAIN(request->call.comm);
}
