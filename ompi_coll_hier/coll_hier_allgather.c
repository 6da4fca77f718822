/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather: its arguments as a call, which the team or the fallback module serves. */
#include "coll_hier_call.h"

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
                                                     &mca_coll_hier_component.allgather_calls,
                                                     &mca_coll_hier_component.allgather_fallbacks};

int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    const size_t size = (size_t)ompi_comm_size(comm);
    const bool in_place = MPI_IN_PLACE == sbuf; /* the other send arguments mean nothing then */
    mca_coll_hier_call_t call = {
        .collective = &allgather,
        .module = hier,
        .comm = comm,
        .in_place = in_place,
        .send = {(void*)sbuf, (size_t)scount, sdtype, {.is_reachable = 1}, &hier->send_copies},
        .receive = {
            rbuf, (size_t)rcount * size, rdtype, {.is_reachable = 1}, &hier->receive_copies}};
    ompi_datatype_type_size(rdtype, &call.shard_bytes);
    call.shard_bytes *= (size_t)rcount;
    call.largest = call.shard_bytes;
    call.total = call.shard_bytes * size;
    if (0 == call.total) {
        /* On all ranks: nothing to do. Some modules stumble over a count of empty elements. */
        mca_coll_hier_count(&call, allgather.calls);
        return OMPI_SUCCESS;
    }
    mca_coll_hier_find_memory(&call);
    call.own = mca_coll_hier_block_of(&call, ompi_comm_rank(comm)).elements;
    call.own.copies = &hier->send_copies;

    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_serve(&call, &rc)) {
        return rc;
    }
    return mca_coll_hier_by_fallback(&call,
                                     (mca_coll_hier_buffer_t){(void*)sbuf, scount, sdtype, false},
                                     (mca_coll_hier_buffer_t){rbuf, rcount, rdtype, false});
}
