/* MPI_Allgather: to the communicator's team, or to the previous module.
 *
 * Which of the two must be the same on all ranks: it is decided from the bytes a rank receives from
 * each, which MPI makes equal everywhere, from the MCA variables, and from the team's state, on
 * which the ranks have agreed. Never from addresses, datatypes or kinds of memory. */
#include "coll_hier.h"

#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/runtime/opal_progress.h"

typedef struct {
    const void* sbuf;
    size_t scount;
    struct ompi_datatype_t* sdtype;
    void* rbuf;
    size_t rcount;
    struct ompi_datatype_t* rdtype;
    int rank, size;
    size_t shard_bytes;
} call_t;

static int to_mpi_error(int code)
{
    switch (code) {
    case HIER_OK:
        return OMPI_SUCCESS;
    case HIER_ERR_MEMORY:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case HIER_ERR_MISMATCH:
        return MPI_ERR_COUNT;
    case HIER_ERR_TIMEOUT:
        return OMPI_ERR_TIMEOUT;
    default:
        return OMPI_ERROR;
    }
}

static int run(hier_team* team, const hier_allgather_args* args)
{
    int rc = hier_allgather_start(team, args);
    while (HIER_IN_PROGRESS == rc) {
        opal_progress();
        rc = hier_team_test(team);
    }
    return to_mpi_error(rc);
}

/* The own shard as one piece of shard_bytes bytes: the send buffer itself, or a packed copy. Too
 * few bytes are made up with zeros and too many are cut, so that the other ranks get their
 * allgather; the caller then gets an error of its own. */
static int dense_send(mca_coll_hier_module_t* module, const call_t* call, const void** out,
                      int* mismatch)
{
    size_t type_bytes;
    ptrdiff_t offset;
    ompi_datatype_type_size(call->sdtype, &type_bytes);
    const size_t bytes = type_bytes * call->scount;
    *mismatch = bytes == call->shard_bytes  ? OMPI_SUCCESS
                : bytes > call->shard_bytes ? MPI_ERR_TRUNCATE
                                            : MPI_ERR_COUNT;
    if (mca_coll_hier_is_dense(call->sdtype, call->scount, &offset) && bytes >= call->shard_bytes) {
        *out = (const char*)call->sbuf + offset;
        return OMPI_SUCCESS;
    }
    char* packed = (char*)mca_coll_hier_reserve(&module->send_staging, call->shard_bytes);
    if (NULL == packed) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *out = packed;
    const size_t usable = bytes < call->shard_bytes ? bytes : call->shard_bytes;
    memset(packed + usable, 0, call->shard_bytes - usable);
    return mca_coll_hier_pack(packed, usable, call->sbuf, call->scount, call->sdtype);
}

static int allgather(mca_coll_hier_module_t* module, const call_t* call)
{
    const size_t total = call->shard_bytes * (size_t)call->size;
    const size_t elements = call->rcount * (size_t)call->size;
    const size_t own_offset = call->shard_bytes * (size_t)call->rank;
    const bool in_place = MPI_IN_PLACE == call->sbuf;
    hier_allgather_args args = {NULL, NULL, call->shard_bytes};
    int mismatch = OMPI_SUCCESS;
    int rc = OMPI_SUCCESS;

    ptrdiff_t offset, lower_bound, extent;
    const bool dense = mca_coll_hier_is_dense(call->rdtype, elements, &offset);
    if (dense) {
        args.recv = (char*)call->rbuf + offset;
    } else {
        args.recv = mca_coll_hier_reserve(&module->receive_staging, total);
        rc = NULL == args.recv ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
    }
    if (OMPI_SUCCESS == rc && !in_place) {
        rc = dense_send(module, call, &args.send, &mismatch);
    } else if (OMPI_SUCCESS == rc && !dense) {
        ompi_datatype_get_extent(call->rdtype, &lower_bound, &extent);
        const char* own = (const char*)call->rbuf + (ptrdiff_t)call->rcount * extent * call->rank;
        rc = mca_coll_hier_pack((char*)args.recv + own_offset, call->shard_bytes, own, call->rcount,
                                call->rdtype);
    }
    /* Out of memory here leaves the others waiting, as it does in every module; they learn of it
     * when this rank aborts. */
    if (OMPI_SUCCESS == rc) {
        rc = run(module->team, &args);
    }
    if (OMPI_SUCCESS == rc && !dense) {
        rc = mca_coll_hier_unpack(args.recv, total, call->rbuf, elements, call->rdtype);
    }
    return OMPI_SUCCESS == rc ? mismatch : rc;
}

/* Threads may be at it on several communicators. */
static void count(unsigned long long* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    call_t call = {sbuf,
                   (size_t)scount,
                   sdtype,
                   rbuf,
                   (size_t)rcount,
                   rdtype,
                   ompi_comm_rank(comm),
                   ompi_comm_size(comm),
                   0};
    ompi_datatype_type_size(rdtype, &call.shard_bytes);
    call.shard_bytes *= call.rcount;

    const size_t total = call.shard_bytes * (size_t)call.size;
    if (0 == total) {
        /* On all ranks: nothing to do. Some modules stumble over a count of empty elements. */
        count(&mca_coll_hier_component.allgather_calls);
        return OMPI_SUCCESS;
    }
    const bool eligible = total >= mca_coll_hier_component.min_bytes;
    if (eligible && MCA_COLL_HIER_FRESH == hier->state) {
        mca_coll_hier_build_team(hier, comm);
    }
    if (!eligible || MCA_COLL_HIER_READY != hier->state) {
        if (MCA_COLL_HIER_BUILDING != hier->state) {
            count(&mca_coll_hier_component.allgather_fallbacks);
        }
        return hier->previous_allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                                        hier->previous_allgather_module);
    }
    count(&mca_coll_hier_component.allgather_calls);
    return allgather(hier, &call);
}
