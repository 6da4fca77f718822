/* The team of a communicator: made at its first call that is worth it, from groups that the core computes
 * and Open MPI splits. */
#include "coll_hier.h"

#include <stdio.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/info/info.h"
#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

typedef struct {
    mca_coll_hier_module_t* module;
    ompi_communicator_t* comm;
    ompi_communicator_t* groups[2]; /* node, rail: they live as long as the set-up */
} bootstrap_context_t;

static int team_allgather(void* context, const void* in, void* out, size_t bytes)
{
    const bootstrap_context_t* c = (const bootstrap_context_t*)context;
    return c->module->previous_allgather(in, (hier_count_t)bytes, MPI_BYTE, out,
                                         (hier_count_t)bytes, MPI_BYTE, c->comm,
                                         c->module->previous_allgather_module);
}

static int group_allgather(void* context, const void* in, void* out, size_t bytes)
{
    ompi_communicator_t* group = (ompi_communicator_t*)context;
    return group->c_coll->coll_allgather(in, (hier_count_t)bytes, MPI_BYTE, out,
                                         (hier_count_t)bytes, MPI_BYTE, group,
                                         group->c_coll->coll_allgather_module);
}

static int split(void* context, int which, int color, int key, hier_group* out)
{
    bootstrap_context_t* c = (bootstrap_context_t*)context;
    ompi_communicator_t* group = NULL;
    opal_info_t info;
    OBJ_CONSTRUCT(&info, opal_info_t);
    opal_info_set(&info, "ompi_comm_coll_preference", "^hier");
    const int rc = ompi_comm_split_with_info(c->comm, color, key, &info, &group, false);
    OBJ_DESTRUCT(&info);
    if (OMPI_SUCCESS == rc) {
        c->groups[which] = group;
        *out = (hier_group){group, ompi_comm_rank(group), ompi_comm_size(group), group_allgather};
    }
    return rc;
}

/* Halves of a communicator have one name and one number: who comes first in them tells them apart. */
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

static void keep_alive(void) { opal_progress(); }

void mca_coll_hier_build_team(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    if (!mca_coll_hier_is_everywhere(comm)) {
        module->state = MCA_COLL_HIER_REFUSED;
        return;
    }
    bootstrap_context_t context = {module, comm, {NULL, NULL}};
    char name[MPI_MAX_OBJECT_NAME + 32];
    name_team(comm, name, sizeof name);
    const hier_bootstrap bootstrap = {
        {&context, ompi_comm_rank(comm), ompi_comm_size(comm), team_allgather}, split, name};
    hier_config config = mca_coll_hier_component.config;
    config.progress = keep_alive;

    module->state = MCA_COLL_HIER_BUILDING;
    const int rc = hier_team_create(&config, &bootstrap, &module->team);
    for (int i = 0; i < 2; i++) {
        if (NULL != context.groups[i]) {
            ompi_comm_free(&context.groups[i]);
        }
    }
    if (HIER_OK != rc) {
        module->state = MCA_COLL_HIER_REFUSED;
        if (0 == ompi_comm_rank(comm)) {
            opal_output(
                0, "coll:hier: %s on communicator %s: the previous module serves its allgathers",
                hier_strerror(rc), comm->c_name);
        }
        return;
    }
    module->state = MCA_COLL_HIER_READY;
    module->least_bytes = 0 < mca_coll_hier_component.min_bytes
                              ? mca_coll_hier_component.min_bytes
                              : hier_team_least_bytes(module->team);
    if (0 == ompi_comm_rank(comm)) {
        opal_output_verbose(1, mca_coll_hier_component.output, "coll:hier: communicator %s: %s",
                            comm->c_name, hier_team_description(module->team));
    }
}
