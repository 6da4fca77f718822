/* SPDX-License-Identifier: BSD-3-Clause */
/* The team of a communicator: made at its first call that is worth it. */
#include "coll_hier_call.h"
#include "coll_hier_setup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

/* Messages have the tag of an allgather, so they meet no other message that is pending on the
 * communicator. */
static int exchange(void* context, const void* out, size_t out_bytes, int to, void* in,
                    size_t in_bytes, int from)
{
    ompi_communicator_t* comm = (ompi_communicator_t*)context;
    ompi_request_t* incoming = MPI_REQUEST_NULL;
    const int tag = MCA_COLL_BASE_TAG_ALLGATHER;
    int rc = OMPI_SUCCESS;
    if (0 <= from) {
        rc = MCA_PML_CALL(irecv(in, in_bytes, MPI_BYTE, from, tag, comm, &incoming));
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (0 <= to) {
        rc =
            MCA_PML_CALL(send(out, out_bytes, MPI_BYTE, to, tag, MCA_PML_BASE_SEND_STANDARD, comm));
    }
    if (OMPI_SUCCESS != rc && 0 <= from) {
        (void)ompi_request_cancel(incoming);
    }
    const int received = 0 <= from ? ompi_request_wait(&incoming, MPI_STATUS_IGNORE) : OMPI_SUCCESS;
    if (MPI_REQUEST_NULL != incoming) { /* it has failed, and Open MPI leaves it to us */
        (void)ompi_request_free(&incoming);
    }
    return OMPI_SUCCESS != rc ? rc : received;
}

/* The parts of a split communicator may have the same name and number. Their first rank tells them
 * apart. */
static void name_team(const struct ompi_communicator_t* comm, char* name, size_t bytes)
{
    const ompi_proc_t* first = ompi_comm_peer_lookup((ompi_communicator_t*)comm, 0);
    const unsigned world_rank = (unsigned)first->super.proc_name.vpid;
    if (0 == world_rank) {
        snprintf(name, bytes, "%s", comm->c_name);
    } else {
        snprintf(name, bytes, "%s from %u", comm->c_name, world_rank);
    }
}

/* A setting of Open MPI's own TCP; "" if that is not loaded. */
static const char* told_to_tcp(const char* variable)
{
    const int index = mca_base_var_find(NULL, "btl", "tcp", variable);
    const char* const* value = NULL;
    if (0 > index || OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL) ||
        NULL == value || NULL == *value) {
        return "";
    }
    return *value;
}

/* Later refusals are likely to have the same cause, so only the first one is shown without being asked
 * for. */
static void report_refusal(const struct ompi_communicator_t* comm, const char* cause)
{
    static atomic_flag has_refused = ATOMIC_FLAG_INIT;
    const bool is_first = !atomic_flag_test_and_set(&has_refused);
    opal_output_verbose(is_first ? 0 : 1, mca_coll_hier_component.output,
                        "coll:hier: %s on communicator %s: the fallback module serves its "
                        "calls%s",
                        cause, comm->c_name,
                        is_first ? " (of others: with coll_hier_verbose 1)" : "");
}

static void keep_alive(void) { opal_progress(); }

void mca_coll_hier_plan_team(struct ompi_communicator_t* comm, mca_coll_hier_plan_t* plan)
{
    name_team(comm, plan->name, sizeof plan->name);
    plan->config = mca_coll_hier_component.config;
    plan->config.device = hier_device_of_thread();
    plan->config.has_threads = ompi_mpi_thread_multiple ? 1 : 0;
    plan->config.tcp_include = told_to_tcp("if_include");
    plan->config.tcp_exclude = told_to_tcp("if_exclude");
    plan->config.messages = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    plan->bootstrap = (hier_bootstrap){
        .rank = ompi_comm_rank(comm), .size = ompi_comm_size(comm), .name = plan->name};
}

/* Tells how the set-up has ended. */
static void tell(struct ompi_communicator_t* comm, int code, const hier_team* team)
{
    if (0 != ompi_comm_rank(comm)) {
        return;
    }
    if (HIER_OK == code) {
        opal_output_verbose(1, mca_coll_hier_component.output, "coll:hier: communicator %s: %s",
                            comm->c_name, hier_team_description(team));
    } else if (HIER_ERR_PEER != code) {
        report_refusal(comm, hier_strerror(code));
    }
}

/* The module has a team, or none, from now on. `code`: what hier_team_create has returned. */
static void take_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm, int code)
{
    tell(comm, code, module->team);
    if (HIER_OK != code) {
        module->state = HIER_ERR_PEER == code ? MCA_COLL_HIER_BROKEN : MCA_COLL_HIER_REFUSED;
        return;
    }
    module->state = MCA_COLL_HIER_READY;
    for (int i = 0; i < HIER_COLLECTIVES; i++) {
        module->min_bytes[i] = 0 < mca_coll_hier_component.min_bytes
                                   ? mca_coll_hier_component.min_bytes
                                   : hier_team_min_bytes(module->team, i);
    }
    module->max_bytes = hier_team_max_bytes(module->team);
}

static int create(mca_coll_hier_plan_t* plan, struct ompi_communicator_t* comm, hier_team** team)
{
    plan->config.progress = keep_alive;
    plan->bootstrap.context = comm;
    plan->bootstrap.exchange = exchange;
    plan->bootstrap.is_present = mca_coll_hier_is_present;
    return hier_team_create(&plan->config, &plan->bootstrap, team);
}

void mca_coll_hier_build_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    mca_coll_hier_plan_t plan;
    mca_coll_hier_plan_team(comm, &plan);
    take_team(module, comm, create(&plan, comm, &module->team));
}

int mca_coll_hier_build_own_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm,
                                 hier_team** team)
{
    mca_coll_hier_plan_t plan;
    mca_coll_hier_plan_team(comm, &plan);
    const size_t end = strlen(plan.name);
    snprintf(plan.name + end, sizeof plan.name - end, " request %u", module->own_teams++);
    const int code = create(&plan, comm, team);
    tell(comm, code, *team);
    return code;
}

void mca_coll_hier_begin_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    module->setup = mca_coll_hier_begin_setup(comm);
    if (NULL == module->setup) {
        (void)mca_coll_hier_lacks_memory(comm);
        return;
    }
    module->state = MCA_COLL_HIER_IN_SETUP;
}

void mca_coll_hier_move_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    int code = HIER_OK;
    if (mca_coll_hier_move_setup(module->setup, &code, &module->team)) {
        module->setup = NULL;
        take_team(module, comm, code);
    }
}
