/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather: to the communicator's team, or to the fallback module.
 *
 * Which of the two must be the same on all ranks: it is decided from the bytes a rank receives from
 * each, which MPI makes equal everywhere, from the MCA variables, and from the team's state, on
 * which the ranks have agreed. Never from addresses, datatypes or kinds of memory. */
#include "coll_hier_call.h"

#include "ompi/datatype/ompi_datatype.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

/* Small calls are over before Open MPI has asked all others whether they have something to do. But a
 * program that makes no other calls needs that, too, and so it gets a share of the calls, whatever
 * calls they are of. */
static void progress(void)
{
    enum { share = 4 };
    static unsigned calls = 0; /* of all threads */
    if (0 == __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % share) {
        opal_progress();
    } else {
        (void)hier_progress();
    }
}

static int run(const mca_coll_hier_call_t* call, const hier_call* args)
{
    hier_request* request;
    int rc = hier_start(call->module->team, args, &request);
    while (HIER_IN_PROGRESS == rc) {
        progress();
        mca_coll_hier_end_if_broken(call);
        rc = hier_test(request);
    }
    return mca_coll_hier_error_of_call(call, rc);
}

/* Can a team work on these elements where they are? Then they start at `start`. */
static bool is_direct(const mca_coll_hier_call_t* call, const mca_coll_hier_elements_t* elements,
                      void** start)
{
    ptrdiff_t offset;
    const bool is_direct =
        mca_coll_hier_is_dense(elements->type, elements->count, &offset) &&
        (elements->memory.is_reachable || hier_team_takes_device_memory(call->module->team));
    *start = mca_coll_hier_at(elements->base, offset);
    return is_direct;
}

/* Where a buffer of a call is that the team cannot work on. */
typedef struct {
    mca_coll_hier_staging_t* staging; /* NULL: it can */
    mca_coll_hier_staging_t lent;
} staged_t;

/* Devices reach each other's memory faster than the host's. But what packs there is a kernel, on NVIDIA
 * (the driver's, for a copy inside a device), and takes longer for a small piece than a copy engine. */
static void choose_staging(const mca_coll_hier_call_t* call,
                           const mca_coll_hier_elements_t* elements, size_t bytes,
                           mca_coll_hier_staging_t* kept, staged_t* staged)
{
    mca_coll_hier_module_t* module = call->module;
    staged->staging = kept;
    if (elements->memory.is_reachable || module->lacks_device_memory ||
        !hier_team_takes_device_memory(module->team) || bytes > HIER_MAX_LENT ||
        bytes > mca_coll_hier_bytes_of(elements) || !mca_coll_hier_is_regular(elements, bytes)) {
        return;
    }
    if (mca_coll_hier_borrow(&staged->lent, bytes, elements)) {
        staged->staging = &staged->lent;
    } else {
        module->lacks_device_memory = true;
    }
}

static void use_staging(const staged_t* staged, hier_buffer* buffer)
{
    buffer->base = staged->staging->base;
    if (NULL != buffer->base) { /* else the call fails */
        hier_memory_inspect(buffer->base, &buffer->memory);
    }
}

static int place_receive(const mca_coll_hier_call_t* call, staged_t* staged, hier_buffer* recv)
{
    recv->bytes = call->total;
    recv->memory = call->receive.memory;
    if (is_direct(call, &call->receive, &recv->base)) {
        return OMPI_SUCCESS;
    }
    choose_staging(call, &call->receive, call->total, &call->module->receive_staging, staged);
    const int rc = mca_coll_hier_stage_receive(call, staged->staging);
    use_staging(staged, recv);
    return rc;
}

static int place_send(const mca_coll_hier_call_t* call, staged_t* staged, hier_buffer* send)
{
    send->bytes = call->shard_bytes;
    send->memory = call->send.memory;
    if (is_direct(call, &call->send, &send->base) &&
        mca_coll_hier_bytes_of(&call->send) >= call->shard_bytes) {
        return OMPI_SUCCESS;
    }
    choose_staging(call, &call->send, call->shard_bytes, &call->module->send_staging, staged);
    const int rc = mca_coll_hier_pack_send(call, staged->staging);
    use_staging(staged, send);
    return rc;
}

static hier_buffer own_block(const mca_coll_hier_call_t* call, const hier_buffer* recv)
{
    const size_t offset = call->shard_bytes * (size_t)ompi_comm_rank(call->comm);
    return (hier_buffer){(char*)recv->base + offset, call->shard_bytes, recv->memory};
}

static void abandon(staged_t* staged)
{
    if (NULL != staged->staging) {
        mca_coll_hier_abandon(staged->staging);
    }
}

static int by_team_staged(const mca_coll_hier_call_t* call, staged_t* send, staged_t* receive)
{
    hier_call args = {
        .collective = HIER_ALLGATHER, .bytes = call->shard_bytes, .in_place = call->in_place};
    int rc = place_receive(call, receive, &args.recv);
    if (OMPI_SUCCESS == rc && !call->in_place) {
        rc = place_send(call, send, &args.send);
    } else if (OMPI_SUCCESS == rc) {
        args.send = own_block(call, &args.recv);
    }
    if (OMPI_SUCCESS != rc) {
        hier_refuse(call->module->team);
        return rc;
    }
    rc = run(call, &args);
    if (OMPI_SUCCESS != rc) {
        /* What is on its way is sent from there, and lands there. */
        abandon(send);
        abandon(receive);
    } else if (NULL != receive->staging) {
        rc = mca_coll_hier_unpack(receive->staging, call->total, &call->receive);
        if (OMPI_SUCCESS != rc) {
            hier_refuse(call->module->team); /* the next: whoever fails may not come */
        }
    }
    return rc;
}

static int by_team(const mca_coll_hier_call_t* call)
{
    staged_t send = {.staging = NULL}, receive = {.staging = NULL};
    int rc = mca_coll_hier_error_of_call(call, hier_team_error(call->module->team));
    if (OMPI_SUCCESS == rc) {
        rc = by_team_staged(call, &send, &receive);
        mca_coll_hier_release(&send.lent);
        mca_coll_hier_release(&receive.lent);
    }
    return OMPI_SUCCESS == rc ? mca_coll_hier_size_mismatch(call) : rc;
}

static void find_memory(mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    hier_memory_inspect(mca_coll_hier_at(elements->base, offset), &elements->memory);
}

/* Set-up takes milliseconds and memory, and many communicators never have a call but those that
 * made their parts. The same on all ranks, for they make the same calls. */
enum { large_total = 32768, many_calls = 16 };

static bool is_worth_a_team(mca_coll_hier_module_t* module, size_t total)
{
    const size_t least = mca_coll_hier_component.min_bytes;
    if (0 < least) {
        return total >= least;
    }
    return total >= large_total || ++module->small_calls >= many_calls;
}

/* Which path runs, and why: a line for the first such call of a communicator, and one for the first
 * that the model finds too small. */
static void tell_of_small_call(mca_coll_hier_call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    const bool is_stated = 0 < mca_coll_hier_component.min_bytes;
    const bool is_fresh = MCA_COLL_HIER_FRESH == module->state && !is_stated;
    const bool is_first = is_fresh ? 1 == module->small_calls : !module->has_told_of_small_calls;
    if (!is_first || 0 != ompi_comm_rank(call->comm)) {
        return;
    }
    if (is_fresh) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: communicator %s: the fallback module serves the first %d "
                            "calls of less than %d bytes in all",
                            call->comm->c_name, many_calls - 1, large_total);
        return;
    }
    module->has_told_of_small_calls = true;
    opal_output_verbose(
        1, mca_coll_hier_component.output,
        "coll:hier: communicator %s: %zu bytes in all are less than %s (%zu): the fallback module "
        "serves such calls%s",
        call->comm->c_name, call->total,
        is_stated ? "coll_hier_min_bytes" : "what the cost model finds worth it",
        is_stated ? mca_coll_hier_component.min_bytes : module->min_bytes,
        call->receive.memory.is_reachable ? "" : ", through memory of the host");
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
    mca_coll_hier_call_t call = {
        .module = hier,
        .comm = comm,
        .in_place = in_place,
        .send = {(void*)sbuf, (size_t)scount, sdtype, {.is_reachable = 1}, &hier->send_plan},
        .receive = {rbuf, (size_t)rcount * size, rdtype, {.is_reachable = 1}, &hier->receive_plan}};
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
    call.own = (mca_coll_hier_elements_t){
        mca_coll_hier_at(rbuf, (ptrdiff_t)rcount * extent * ompi_comm_rank(comm)), (size_t)rcount,
        rdtype, call.receive.memory, &hier->send_plan};

    if (1 < size && MCA_COLL_HIER_FRESH == hier->state && is_worth_a_team(hier, call.total)) {
        mca_coll_hier_build_team(hier, comm);
    }
    if (MCA_COLL_HIER_BROKEN == hier->state) {
        return mca_coll_hier_error_of_call(&call, HIER_ERR_PEER);
    }
    if (MCA_COLL_HIER_READY != hier->state || call.total < hier->min_bytes ||
        call.total > hier->max_bytes) {
        if (1 < size) {
            count(&mca_coll_hier_component.allgather_fallbacks);
            if (MCA_COLL_HIER_REFUSED != hier->state && call.total <= hier->max_bytes) {
                tell_of_small_call(&call);
            }
        }
        return mca_coll_hier_by_fallback(
            &call, (mca_coll_hier_buffer_t){(void*)sbuf, scount, sdtype, false},
            (mca_coll_hier_buffer_t){rbuf, rcount, rdtype, false});
    }
    count(&mca_coll_hier_component.allgather_calls);
    return by_team(&call);
}
