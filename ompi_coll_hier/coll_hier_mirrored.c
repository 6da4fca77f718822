/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking calls of the other collectives. Mirrors in memory of the host take the place of buffers in device memory.
 * Then the module that served the collective before serves the call. */
#include "coll_hier_others.h"

#include "coll_hier_mirror.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

#if !HIER_MODULE_INSTALLS

typedef struct ompi_datatype_t* type_t;
typedef struct ompi_op_t* op_t;
typedef struct ompi_communicator_t* comm_t;
typedef mca_coll_base_module_t module_t;

/* ---- a call */

/* No call has more than two buffers. */
typedef struct {
    mca_coll_hier_module_t* module;
    comm_t comm;
    int id;
    int rc;
    bool is_all_host; /* no buffer needs a mirror */
    int used;
    mca_coll_hier_mirror_t mirrors[2];
} call_t;

/* The mirrors stay as they are: to clear them would take as long as a small call. */
static void begin(call_t* call, module_t* module, comm_t comm, int id)
{
    call->module = (mca_coll_hier_module_t*)module;
    call->comm = comm;
    call->id = id;
    call->rc = OMPI_SUCCESS;
    call->is_all_host = 0 != hier_memory_is_all_host();
    call->used = 0;
}

/* What takes the place of the buffer's base. */
static void* place(call_t* call, mca_coll_hier_use_t use, const mca_coll_hier_blocks_t* blocks)
{
    void* base = blocks->base;
    if (call->is_all_host || OMPI_SUCCESS != call->rc) {
        return base;
    }
    mca_coll_hier_mirror_t* mirror = &call->mirrors[call->used];
    mirror->blocks = *blocks;
    mirror->use = use;
    mirror->copies = 0 == call->used ? &call->module->send_copies : &call->module->receive_copies;
    call->used++;
    call->rc = mca_coll_hier_begin_mirror(mirror, &base);
    return base;
}

/* Blocks of equal size, one behind the other. */
static void* place_equal(call_t* call, mca_coll_hier_use_t use, const void* base, size_t blocks,
                         int count, type_t type)
{
    return place(
        call, use,
        &(mca_coll_hier_blocks_t){
            .base = (void*)base, .blocks = 1, .count = blocks * (size_t)count, .type = type});
}

static void* place_each(call_t* call, mca_coll_hier_use_t use, const void* base, const int* counts,
                        const int* displacements, type_t type, const type_t* types)
{
    return place(call, use,
                 &(mca_coll_hier_blocks_t){.base = (void*)base,
                                           .blocks = (size_t)ompi_comm_size(call->comm),
                                           .counts = counts,
                                           .displacements = displacements,
                                           .type = type,
                                           .types = types});
}

/* Can the call be made? A rank that cannot take part has no way to tell the others: they would wait for it.
 * So the job ends. */
static bool is_ready(call_t* call)
{
    mca_coll_hier_previous_t* previous = &call->module->others[call->id];
    bool has_mirror = false;
    for (int i = 0; i < call->used; i++) {
        has_mirror = has_mirror || NULL != call->mirrors[i].staging.base;
    }
    if (has_mirror && !previous->is_told && 0 == ompi_comm_rank(call->comm)) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: communicator %s: %s of device memory goes through "
                            "memory of the host, by the module that serves it",
                            call->comm->c_name, mca_coll_hier_name_of_other(call->id));
    }
    previous->is_told = previous->is_told || has_mirror;
    if (OMPI_SUCCESS != call->rc) {
        opal_output(0,
                    "coll:hier: rank %d cannot copy its device memory for %s on %s. No other "
                    "rank can be told, so the job ends",
                    ompi_comm_rank(call->comm), mca_coll_hier_name_of_other(call->id),
                    call->comm->c_name);
        call->rc = ompi_mpi_abort(call->comm, call->rc);
        return false;
    }
    return true;
}

static int end(call_t* call, int rc)
{
    for (int i = 0; i < call->used && OMPI_SUCCESS == rc; i++) {
        rc = mca_coll_hier_end_mirror(&call->mirrors[i]);
    }
    return rc;
}

/* Lets the previous module serve the call. The arguments are those in front of the communicator. */
#define SERVE(name, ...)                                                                           \
    (is_ready(&call)                                                                               \
         ? end(&call, ((mca_coll_base_module_##name##_fn_t)call.module->others[call.id].function)( \
                          __VA_ARGS__, comm, call.module->others[call.id].module))                 \
         : call.rc)
#define READ MCA_COLL_HIER_READ
#define WRITTEN MCA_COLL_HIER_WRITTEN
#define BOTH MCA_COLL_HIER_BOTH
#define SIZE(comm) ((size_t)ompi_comm_size(comm))

/* ---- the collectives: what is read and what is written
 *
 * In place, a rank's own part of the receive buffer is read. Then all of it is copied, which is simpler. */

static int other_bcast(void* buffer, int count, type_t type, int root, comm_t comm,
                       module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_bcast);
    void* base =
        place_equal(&call, ompi_comm_rank(comm) == root ? READ : WRITTEN, buffer, 1, count, type);
    return SERVE(bcast, base, count, type, root);
}

/* The buffers of a reduction in which every rank gets `result` of the `count` elements. */
static void place_reduction(call_t* call, const void** send, void** receive, int count, type_t type,
                            mca_coll_hier_use_t use)
{
    if (MPI_IN_PLACE == *send) {
        use = BOTH;
    } else {
        *send = place_equal(call, READ, *send, 1, count, type);
    }
    *receive = place_equal(call, use, *receive, 1, count, type);
}

static int other_allreduce(const void* send, void* receive, int count, type_t type, op_t op,
                           comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_allreduce);
    place_reduction(&call, &send, &receive, count, type, WRITTEN);
    return SERVE(allreduce, send, receive, count, type, op);
}

static int other_scan(const void* send, void* receive, int count, type_t type, op_t op, comm_t comm,
                      module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_scan);
    place_reduction(&call, &send, &receive, count, type, WRITTEN);
    return SERVE(scan, send, receive, count, type, op);
}

/* The first rank gets nothing. */
static int other_exscan(const void* send, void* receive, int count, type_t type, op_t op,
                        comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_exscan);
    place_reduction(&call, &send, &receive, count, type, BOTH);
    return SERVE(exscan, send, receive, count, type, op);
}

static int other_reduce(const void* send, void* receive, int count, type_t type, op_t op, int root,
                        comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_reduce);
    if (ompi_comm_rank(comm) == root) {
        place_reduction(&call, &send, &receive, count, type, WRITTEN);
    } else {
        send = place_equal(&call, READ, send, 1, count, type);
    }
    return SERVE(reduce, send, receive, count, type, op, root);
}

/* In place, the receive buffer has the elements for all ranks. */
static void place_scattered_reduction(call_t* call, const void** send, void** receive, size_t all,
                                      int own, type_t type)
{
    mca_coll_hier_blocks_t everything = {.blocks = 1, .count = all, .type = type};
    if (MPI_IN_PLACE == *send) {
        everything.base = *receive;
        *receive = place(call, BOTH, &everything);
    } else {
        everything.base = (void*)*send;
        *send = place(call, READ, &everything);
        *receive = place_equal(call, WRITTEN, *receive, 1, own, type);
    }
}

static int other_reduce_scatter(const void* send, void* receive, const int* counts, type_t type,
                                op_t op, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_reduce_scatter);
    size_t all = 0;
    for (size_t i = 0; i < SIZE(comm); i++) {
        all += (size_t)counts[i];
    }
    place_scattered_reduction(&call, &send, &receive, all, counts[ompi_comm_rank(comm)], type);
    return SERVE(reduce_scatter, send, receive, counts, type, op);
}

static int other_reduce_scatter_block(const void* send, void* receive, int count, type_t type,
                                      op_t op, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_reduce_scatter_block);
    place_scattered_reduction(&call, &send, &receive, SIZE(comm) * (size_t)count, count, type);
    return SERVE(reduce_scatter_block, send, receive, count, type, op);
}

static int other_allgatherv(const void* send, int send_count, type_t send_type, void* receive,
                            const int* counts, const int* displacements, type_t type, comm_t comm,
                            module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_allgatherv);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_equal(&call, READ, send, 1, send_count, send_type);
    }
    receive =
        place_each(&call, in_place ? BOTH : WRITTEN, receive, counts, displacements, type, NULL);
    return SERVE(allgatherv, send, send_count, send_type, receive, counts, displacements, type);
}

static int other_alltoall(const void* send, int send_count, type_t send_type, void* receive,
                          int count, type_t type, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_alltoall);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_equal(&call, READ, send, SIZE(comm), send_count, send_type);
    }
    receive = place_equal(&call, in_place ? BOTH : WRITTEN, receive, SIZE(comm), count, type);
    return SERVE(alltoall, send, send_count, send_type, receive, count, type);
}

static int other_alltoallv(const void* send, const int* send_counts, const int* send_displacements,
                           type_t send_type, void* receive, const int* counts,
                           const int* displacements, type_t type, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_alltoallv);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_each(&call, READ, send, send_counts, send_displacements, send_type, NULL);
    }
    receive =
        place_each(&call, in_place ? BOTH : WRITTEN, receive, counts, displacements, type, NULL);
    return SERVE(alltoallv, send, send_counts, send_displacements, send_type, receive, counts,
                 displacements, type);
}

static int other_alltoallw(const void* send, const int* send_counts, const int* send_displacements,
                           const type_t* send_types, void* receive, const int* counts,
                           const int* displacements, const type_t* types, comm_t comm,
                           module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_alltoallw);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_each(&call, READ, send, send_counts, send_displacements, NULL, send_types);
    }
    receive =
        place_each(&call, in_place ? BOTH : WRITTEN, receive, counts, displacements, NULL, types);
    return SERVE(alltoallw, send, send_counts, send_displacements, send_types, receive, counts,
                 displacements, types);
}

static int other_gather(const void* send, int send_count, type_t send_type, void* receive,
                        int count, type_t type, int root, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_gather);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_equal(&call, READ, send, 1, send_count, send_type);
    }
    if (ompi_comm_rank(comm) == root) {
        receive = place_equal(&call, in_place ? BOTH : WRITTEN, receive, SIZE(comm), count, type);
    }
    return SERVE(gather, send, send_count, send_type, receive, count, type, root);
}

static int other_gatherv(const void* send, int send_count, type_t send_type, void* receive,
                         const int* counts, const int* displacements, type_t type, int root,
                         comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_gatherv);
    const bool in_place = MPI_IN_PLACE == send;
    if (!in_place) {
        send = place_equal(&call, READ, send, 1, send_count, send_type);
    }
    if (ompi_comm_rank(comm) == root) {
        receive = place_each(&call, in_place ? BOTH : WRITTEN, receive, counts, displacements, type,
                             NULL);
    }
    return SERVE(gatherv, send, send_count, send_type, receive, counts, displacements, type, root);
}

static int other_scatter(const void* send, int send_count, type_t send_type, void* receive,
                         int count, type_t type, int root, comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_scatter);
    if (ompi_comm_rank(comm) == root) {
        send = place_equal(&call, READ, send, SIZE(comm), send_count, send_type);
    }
    if (MPI_IN_PLACE != receive) {
        receive = place_equal(&call, WRITTEN, receive, 1, count, type);
    }
    return SERVE(scatter, send, send_count, send_type, receive, count, type, root);
}

static int other_scatterv(const void* send, const int* counts, const int* displacements,
                          type_t send_type, void* receive, int count, type_t type, int root,
                          comm_t comm, module_t* module)
{
    call_t call;
    begin(&call, module, comm, MCA_COLL_HIER_scatterv);
    if (ompi_comm_rank(comm) == root) {
        send = place_each(&call, READ, send, counts, displacements, send_type, NULL);
    }
    if (MPI_IN_PLACE != receive) {
        receive = place_equal(&call, WRITTEN, receive, 1, count, type);
    }
    return SERVE(scatterv, send, counts, displacements, send_type, receive, count, type, root);
}

mca_coll_hier_function_t mca_coll_hier_mirrored(int id)
{
#define FUNCTION(name) [MCA_COLL_HIER_##name] = (mca_coll_hier_function_t)other_##name,
    static const mca_coll_hier_function_t functions[MCA_COLL_HIER_OTHER_COUNT] = {
        MCA_COLL_HIER_MIRRORED(FUNCTION)};
#undef FUNCTION
    return functions[id];
}
#endif
