/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather, MPI_Iallgather and MPI_Allgather_init: their arguments as a call. */
#include "coll_hier_persistent.h"

#include "ompi/datatype/ompi_datatype.h"

static int run_fallback(const mca_coll_hier_call_t* call, const mca_coll_hier_buffer_t* send,
                        const mca_coll_hier_buffer_t* receive)
{
    mca_coll_hier_module_t* module = call->module;
    return module->fallback_allgather(send->base, send->count, send->type, receive->base,
                                      receive->count, receive->type, call->comm,
                                      module->fallback_allgather_module);
}

static const mca_coll_hier_collective_t allgather = {HIER_ALLGATHER, "MPI_Allgather", run_fallback,
                                                     MCA_COLL_HIER_COUNT_ALLGATHER};
static const mca_coll_hier_collective_t iallgather = {HIER_ALLGATHER, "MPI_Iallgather", NULL,
                                                      MCA_COLL_HIER_COUNT_IALLGATHER};
static const mca_coll_hier_collective_t allgather_init = {HIER_ALLGATHER, "MPI_Allgather_init",
                                                          NULL, MCA_COLL_HIER_COUNT_ALLGATHER_INIT};

static void set_count(mca_coll_hier_call_t* call, size_t count)
{
    const size_t size = (size_t)ompi_comm_size(call->comm);
    ompi_datatype_type_size(call->receive.type, &call->shard_bytes);
    call->shard_bytes *= count;
    call->largest = call->shard_bytes;
    call->total = call->shard_bytes * size;
    call->receive.count = count * size;
}

int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    const mca_coll_hier_buffer_t send = {(void*)sbuf, scount, sdtype, false};
    const mca_coll_hier_buffer_t receive = {rbuf, rcount, rdtype, false};
    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_serve_again((mca_coll_hier_module_t*)module, &allgather, &send, &receive,
                                  &rc)) {
        return rc;
    }
    mca_coll_hier_call_t call;
    mca_coll_hier_describe(&call, sbuf, (size_t)scount, sdtype, rbuf, rdtype, comm, module);
    call.collective = &allgather;
    set_count(&call, (size_t)rcount);
    if (0 == call.total) {
        /* On all ranks: nothing to do. Some modules stumble over a count of empty elements. */
        mca_coll_hier_count_served(&call);
        return OMPI_SUCCESS;
    }
    return mca_coll_hier_serve(&call, &rc) ? rc : mca_coll_hier_by_fallback(&call, send, receive);
}

/* NULL: the job ends. */
static mca_coll_hier_request_t* new_request(const mca_coll_hier_collective_t* collective,
                                            const void* sbuf, hier_count_t scount,
                                            struct ompi_datatype_t* sdtype, void* rbuf,
                                            hier_count_t rcount, struct ompi_datatype_t* rdtype,
                                            struct ompi_communicator_t* comm,
                                            mca_coll_base_module_t* module)
{
    mca_coll_hier_request_t* request = mca_coll_hier_new_request(comm);
    if (NULL != request) {
        mca_coll_hier_describe(&request->call, sbuf, (size_t)scount, sdtype, rbuf, rdtype, comm,
                               module);
        request->call.collective = collective;
        set_count(&request->call, (size_t)rcount);
    }
    return request;
}

int mca_coll_hier_iallgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                             void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                             struct ompi_communicator_t* comm, struct ompi_request_t** handle,
                             mca_coll_base_module_t* module)
{
    const mca_coll_hier_buffer_t send = {(void*)sbuf, scount, sdtype, false};
    const mca_coll_hier_buffer_t receive = {rbuf, rcount, rdtype, false};
    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_start_again((mca_coll_hier_module_t*)module, &iallgather, &send, &receive,
                                  handle, &rc)) {
        return rc;
    }
    mca_coll_hier_request_t* request =
        new_request(&iallgather, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
    return NULL == request ? OMPI_ERR_OUT_OF_RESOURCE : mca_coll_hier_start_once(request, handle);
}

int mca_coll_hier_allgather_init(const void* sbuf, hier_count_t scount,
                                 struct ompi_datatype_t* sdtype, void* rbuf, hier_count_t rcount,
                                 struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                                 struct ompi_info_t* info, struct ompi_request_t** handle,
                                 mca_coll_base_module_t* module)
{
    (void)info;
    mca_coll_hier_request_t* request =
        new_request(&allgather_init, sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, module);
    return NULL == request ? OMPI_ERR_OUT_OF_RESOURCE
                           : mca_coll_hier_make_persistent(request, handle);
}
