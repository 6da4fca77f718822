/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that end while the others live on (ULFM). A call fails if a process of its communicator has
 * ended, or if the communicator was revoked.
 *
 * Open MPI's own collectives learn of that from the requests that they wait for. Ours wait for words in
 * memory. So they look at what Open MPI has noted at the communicator. */
#include "coll_hier_call.h"

#if HIER_HAS_ULFM

#include <stdlib.h>
#include <time.h>

#include "ompi/runtime/params.h"
#include "opal/runtime/opal_progress.h"

/* The error that Open MPI has noted at a communicator, or OMPI_SUCCESS. */
static int verdict(struct ompi_communicator_t* comm)
{
    int error = OMPI_SUCCESS;
    (void)ompi_comm_iface_coll_check(comm, &error);
    return error;
}

void mca_coll_hier_end_if_broken(const mca_coll_hier_call_t* call)
{
    if (!ompi_ftmpi_enabled || OMPI_SUCCESS == verdict(call->comm)) {
        return;
    }
    const int size = ompi_comm_size(call->comm);
    unsigned char* is_dead = calloc((size_t)size, 1);
    if (NULL == is_dead) {
        return; /* the next pass tries again */
    }
    for (int rank = 0; rank < size; rank++) {
        is_dead[rank] = !ompi_comm_is_proc_active(call->comm, rank, false);
    }
    hier_interrupt(call->team, is_dead);
    free(is_dead);
}

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* A rank or a broken connection may tell of a death before Open MPI knows. So we give Open MPI some time,
 * once for each communicator. Other failures cost that time too: a rank that hears of a failure does not
 * know its cause. */
int mca_coll_hier_error_of_call(const mca_coll_hier_call_t* call, int code)
{
    enum { patience_s = 5 };
    const bool may_be_death = HIER_ERR_PEER == code || HIER_ERR_TRANSPORT == code;
    if (!ompi_ftmpi_enabled || !may_be_death) {
        return mca_coll_hier_to_mpi_error(code);
    }
    const time_t end = now() + patience_s;
    int found = verdict(call->comm);
    while (OMPI_SUCCESS == found && !call->module->has_waited_for_cause && now() < end) {
        opal_progress();
        found = verdict(call->comm);
    }
    call->module->has_waited_for_cause = true;
    return OMPI_SUCCESS == found ? mca_coll_hier_to_mpi_error(code) : found;
}

#else

void mca_coll_hier_end_if_broken(const mca_coll_hier_call_t* call) { (void)call; }

int mca_coll_hier_error_of_call(const mca_coll_hier_call_t* call, int code)
{
    (void)call;
    return mca_coll_hier_to_mpi_error(code);
}

#endif
