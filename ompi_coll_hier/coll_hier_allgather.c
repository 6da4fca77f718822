/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather: its arguments as a call, which the team or the fallback module serves. */
#include "coll_hier_call.h"

#include "ompi/datatype/ompi_datatype.h"

static const void* first_byte(const mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    return mca_coll_hier_at(elements->base, offset);
}

static void find_memory(mca_coll_hier_call_t* call)
{
    const void* const addresses[] = {first_byte(&call->receive),
                                     call->in_place ? NULL : first_byte(&call->send)};
    hier_memory* const memories[] = {&call->receive.memory, &call->send.memory};
    hier_memory_inspect(call->in_place ? 1 : 2, addresses, memories);
}

static int run_fallback(const mca_coll_hier_call_t* call, const mca_coll_hier_buffer_t* send,
                        const mca_coll_hier_buffer_t* receive)
{
    mca_coll_hier_module_t* module = call->module;
    return module->fallback_allgather(send->base, send->count, send->type, receive->base,
                                      receive->count, receive->type, call->comm,
                                      module->fallback_allgather_module);
}

static const mca_coll_hier_collective_t allgather = {HIER_ALLGATHER, "MPI_Allgather", run_fallback};

/* Threads may count on several communicators at once. */
static void count(unsigned long long* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    const size_t size = (size_t)ompi_comm_size(comm);
    const bool in_place = MPI_IN_PLACE == sbuf; /* the other send arguments mean nothing then */
    ptrdiff_t lower_bound, extent;
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
    call.total = call.shard_bytes * size;
    if (0 == call.total) {
        /* On all ranks: nothing to do. Some modules stumble over a count of empty elements. */
        if (1 < size) {
            count(&mca_coll_hier_component.allgather_calls);
        }
        return OMPI_SUCCESS;
    }
    find_memory(&call);
    ompi_datatype_get_extent(rdtype, &lower_bound, &extent);
    call.own = (mca_coll_hier_elements_t){
        mca_coll_hier_at(rbuf, (ptrdiff_t)rcount * extent * ompi_comm_rank(comm)), (size_t)rcount,
        rdtype, call.receive.memory, &hier->send_copies};

    switch (mca_coll_hier_choose(&call)) {
    case MCA_COLL_HIER_BY_TEAM:
        count(&mca_coll_hier_component.allgather_calls);
        return mca_coll_hier_by_team(&call);
    case MCA_COLL_HIER_BY_NOBODY:
        return mca_coll_hier_error_of_call(&call, HIER_ERR_PEER);
    case MCA_COLL_HIER_BY_FALLBACK:
        break;
    }
    if (1 < size) {
        count(&mca_coll_hier_component.allgather_fallbacks);
    }
    return mca_coll_hier_by_fallback(&call,
                                     (mca_coll_hier_buffer_t){(void*)sbuf, scount, sdtype, false},
                                     (mca_coll_hier_buffer_t){rbuf, rcount, rdtype, false});
}
