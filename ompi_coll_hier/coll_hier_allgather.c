/* MPI_Allgather: to the communicator's team, or to the previous module.
 *
 * Which of the two must be the same on all ranks: it is decided from the bytes a rank receives from
 * each, which MPI makes equal everywhere, from the MCA variables, and from the team's state, on
 * which the ranks have agreed. Never from addresses, datatypes or kinds of memory. */
#include "coll_hier.h"

#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

typedef struct {
    mca_coll_hier_module_t* module;
    struct ompi_communicator_t* comm;
    bool in_place;
    mca_coll_hier_elements_t send;    /* unless in place */
    mca_coll_hier_elements_t receive; /* of all ranks */
    mca_coll_hier_elements_t own;     /* the part of `receive` that is this rank's */
    size_t shard_bytes;
    size_t total;
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

/* Can a team work on these elements where they are? Then they start at `start`. */
static bool is_direct(const call_t* call, const mca_coll_hier_elements_t* elements, void** start)
{
    ptrdiff_t offset;
    const bool is_direct =
        mca_coll_hier_is_dense(elements->type, elements->count, &offset) &&
        (elements->is_reachable || hier_team_takes_device_memory(call->module->team));
    *start = (char*)elements->base + offset;
    return is_direct;
}

static size_t bytes_of(const mca_coll_hier_elements_t* elements)
{
    size_t type_bytes;
    ompi_datatype_type_size(elements->type, &type_bytes);
    return type_bytes * elements->count;
}

/* What the caller is told when it gives another number of bytes than the others. */
static int size_mismatch(const call_t* call)
{
    const size_t bytes = call->in_place ? call->shard_bytes : bytes_of(&call->send);
    return bytes == call->shard_bytes  ? OMPI_SUCCESS
           : bytes > call->shard_bytes ? MPI_ERR_TRUNCATE
                                       : MPI_ERR_COUNT;
}

/* The own shard packed in memory of the host. Too few bytes are made up with zeros and too many are
 * cut, so that the other ranks get their allgather. */
static int pack_send(const call_t* call, void** packed)
{
    const size_t bytes = bytes_of(&call->send);
    const size_t usable = bytes < call->shard_bytes ? bytes : call->shard_bytes;
    char* base = (char*)mca_coll_hier_reserve(&call->module->send_staging, call->shard_bytes,
                                              !call->send.is_reachable);
    if (NULL == base) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *packed = base;
    memset(base + usable, 0, call->shard_bytes - usable);
    return mca_coll_hier_pack(&call->module->send_staging, 0, usable, &call->send);
}

/* Memory of the host for the result, with the own shard in it when the call is in place. */
static int stage_receive(const call_t* call, void** staged)
{
    char* base = (char*)mca_coll_hier_reserve(&call->module->receive_staging, call->total,
                                              !call->receive.is_reachable);
    if (NULL == base) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *staged = base;
    if (!call->in_place) {
        return OMPI_SUCCESS;
    }
    return mca_coll_hier_pack(&call->module->receive_staging,
                              call->shard_bytes * (size_t)ompi_comm_rank(call->comm),
                              call->shard_bytes, &call->own);
}

static int by_team(const call_t* call)
{
    hier_allgather_args args = {NULL, NULL, call->shard_bytes};
    void* start;
    int rc = to_mpi_error(hier_team_error(call->module->team));
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    const bool receive_is_direct = is_direct(call, &call->receive, &args.recv);
    if (!receive_is_direct) {
        rc = stage_receive(call, &args.recv);
    }
    if (OMPI_SUCCESS == rc && !call->in_place) {
        if (is_direct(call, &call->send, &start) && bytes_of(&call->send) >= call->shard_bytes) {
            args.send = start;
        } else {
            rc = pack_send(call, &start);
            args.send = start;
        }
    }
    if (OMPI_SUCCESS != rc) {
        hier_allgather_refuse(call->module->team);
        return rc;
    }
    rc = run(call->module->team, &args);
    if (OMPI_SUCCESS != rc && NULL != args.send && args.send == call->module->send_staging.base) {
        /* What is on its way is sent from there. */
        mca_coll_hier_abandon(&call->module->send_staging);
    }
    if (OMPI_SUCCESS != rc && !receive_is_direct) {
        mca_coll_hier_abandon(&call->module->receive_staging);
    } else if (!receive_is_direct) {
        rc = mca_coll_hier_unpack(&call->module->receive_staging, call->total, &call->receive);
        if (OMPI_SUCCESS != rc) {
            hier_allgather_refuse(call->module->team); /* the next: whoever fails may not come */
        }
    }
    return OMPI_SUCCESS == rc ? size_mismatch(call) : rc;
}

/* As elements of the receiving type: there may be too many bytes for a count. */
static void describe_packed(const call_t* call, mca_coll_hier_buffer_t* buffer)
{
    *buffer = (mca_coll_hier_buffer_t){NULL, 0, NULL, false};
    mca_coll_hier_describe_bytes(call->own.count, call->shard_bytes / call->own.count, buffer);
}

/* Nothing of a call of the stock modules can tell the others that this rank cannot take part. So it does,
 * with zeros for a block that cannot be had, in pageable memory, and the error is its own. Where there is
 * no memory either, what it receives is lost, and with it what it should have passed on. */
static int stage_send_for_previous(const call_t* call, mca_coll_hier_buffer_t* buffer)
{
    mca_coll_hier_staging_t* staging = &call->module->send_staging;
    describe_packed(call, buffer);
    const int rc = pack_send(call, &buffer->base);
    if (OMPI_SUCCESS == rc) {
        return rc;
    }
    buffer->base = mca_coll_hier_reserve(staging, call->shard_bytes, false);
    if (NULL != buffer->base) {
        memset(buffer->base, 0, call->shard_bytes);
    } else {
        mca_coll_hier_drop_type(buffer);
        mca_coll_hier_make_stand_in(call->shard_bytes, true, buffer);
    }
    return rc;
}

static int stage_receive_for_previous(const call_t* call, mca_coll_hier_buffer_t* buffer)
{
    mca_coll_hier_staging_t* staging = &call->module->receive_staging;
    const size_t own = call->shard_bytes * (size_t)ompi_comm_rank(call->comm);
    describe_packed(call, buffer);
    const int rc = stage_receive(call, &buffer->base);
    if (OMPI_SUCCESS == rc) {
        return rc;
    }
    buffer->base = mca_coll_hier_reserve(staging, call->total, false);
    if (NULL != buffer->base) {
        memset((char*)buffer->base + own, 0, call->shard_bytes);
    } else {
        mca_coll_hier_drop_type(buffer);
        mca_coll_hier_make_stand_in(call->shard_bytes, false, buffer);
    }
    return rc;
}

static void tell_of_absence(const call_t* call, bool has_memory)
{
    opal_output(0,
                "coll:hier: rank %d cannot take part in an allgather of %zu bytes a rank on %s: %s",
                ompi_comm_rank(call->comm), call->shard_bytes, call->comm->c_name,
                has_memory ? "the others get zeros for its block"
                           : "it has no memory, and the others' results are worth nothing");
}

/* The stock modules read and write buffers by the CPU. */
static int by_previous(const call_t* call, mca_coll_hier_buffer_t send,
                       mca_coll_hier_buffer_t receive)
{
    mca_coll_hier_module_t* module = call->module;
    const bool stage_send = !call->in_place && !call->send.is_reachable;
    const bool stage_result = !call->receive.is_reachable;
    int rc = stage_send ? stage_send_for_previous(call, &send) : OMPI_SUCCESS;
    const int rc_receive = stage_result ? stage_receive_for_previous(call, &receive) : OMPI_SUCCESS;
    rc = OMPI_SUCCESS == rc ? rc_receive : rc;
    const bool takes_part = (NULL != send.type || !stage_send) && NULL != receive.type;
    if (OMPI_SUCCESS != rc || !takes_part) {
        tell_of_absence(call, takes_part && !mca_coll_hier_is_stand_in(&receive));
    }
    int rc_previous = OMPI_ERR_OUT_OF_RESOURCE;
    if (takes_part) {
        rc_previous = module->previous_allgather(send.base, send.count, send.type, receive.base,
                                                 receive.count, receive.type, call->comm,
                                                 module->previous_allgather_module);
    }
    mca_coll_hier_drop_type(&send);
    mca_coll_hier_drop_type(&receive);
    rc = OMPI_SUCCESS == rc ? rc_previous : rc;
    if (OMPI_SUCCESS == rc && stage_result) {
        rc = mca_coll_hier_unpack(&module->receive_staging, call->total, &call->receive);
    }
    return OMPI_SUCCESS == rc && stage_send ? size_mismatch(call) : rc;
}

static void find_memory(mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    elements->is_reachable = 0 != hier_memory_is_reachable((char*)elements->base + offset);
}

/* Set-up takes milliseconds and memory, and many communicators never have a call but those that
 * made their parts. The same on all ranks, for they make the same calls. */
static bool is_worth_a_team(mca_coll_hier_module_t* module, size_t total)
{
    enum { large = 32768, many = 16 };
    const size_t least = mca_coll_hier_component.min_bytes;
    if (0 < least) {
        return total >= least;
    }
    return total >= large || ++module->small_calls >= many;
}

/* Which path runs, and why: a line for the first such call of a communicator. */
static void tell_of_small_call(call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    const bool is_known = MCA_COLL_HIER_READY == module->state;
    const bool is_stated = 0 < mca_coll_hier_component.min_bytes;
    if (module->has_told_of_small_calls || (!is_known && !is_stated)) {
        return;
    }
    module->has_told_of_small_calls = true;
    if (0 == ompi_comm_rank(call->comm)) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: communicator %s: %zu bytes in all are less than %s "
                            "(%zu): the previous module serves such calls%s",
                            call->comm->c_name, call->total,
                            is_stated ? "coll_hier_min_bytes"
                                      : "what the cost model finds worth it",
                            is_stated ? mca_coll_hier_component.min_bytes : module->least_bytes,
                            call->receive.is_reachable ? "" : ", through memory of the host");
    }
}

/* Threads may be at it on several communicators. */
static void count(unsigned long long* counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

int mca_coll_hier_allgather(const void* sbuf, hier_count_t scount, struct ompi_datatype_t* sdtype,
                            void* rbuf, hier_count_t rcount, struct ompi_datatype_t* rdtype,
                            struct ompi_communicator_t* comm, mca_coll_base_module_t* module)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    const size_t size = (size_t)ompi_comm_size(comm);
    const bool in_place = MPI_IN_PLACE == sbuf; /* the other send arguments mean nothing then */
    ptrdiff_t lower_bound, extent;
    call_t call = {.module = hier,
                   .comm = comm,
                   .in_place = in_place,
                   .send = {(void*)sbuf, (size_t)scount, sdtype, true},
                   .receive = {rbuf, (size_t)rcount * size, rdtype, true}};
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
    find_memory(&call.receive);
    if (!in_place) {
        find_memory(&call.send);
    }
    ompi_datatype_get_extent(rdtype, &lower_bound, &extent);
    call.own =
        (mca_coll_hier_elements_t){(char*)rbuf + (ptrdiff_t)rcount * extent * ompi_comm_rank(comm),
                                   (size_t)rcount, rdtype, call.receive.is_reachable};

    if (1 < size && MCA_COLL_HIER_FRESH == hier->state && is_worth_a_team(hier, call.total)) {
        mca_coll_hier_build_team(hier, comm);
    }
    if (MCA_COLL_HIER_READY != hier->state || call.total < hier->least_bytes ||
        call.total > hier->most_bytes) {
        if (1 < size) {
            count(&mca_coll_hier_component.allgather_fallbacks);
            if (MCA_COLL_HIER_REFUSED != hier->state && call.total <= hier->most_bytes) {
                tell_of_small_call(&call);
            }
        }
        return by_previous(&call, (mca_coll_hier_buffer_t){(void*)sbuf, scount, sdtype, false},
                           (mca_coll_hier_buffer_t){rbuf, rcount, rdtype, false});
    }
    count(&mca_coll_hier_component.allgather_calls);
    return by_team(&call);
}
