/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_last.h"
#include "coll_hier_setup.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

static int hier_enable(mca_coll_base_module_t* module, struct ompi_communicator_t* comm);
static int hier_disable(mca_coll_base_module_t* module, struct ompi_communicator_t* comm);

static void construct(mca_coll_hier_module_t* module)
{
    /* Open MPI takes the memory from malloc. All ranks must begin to count at 0. */
    memset((char*)module + sizeof module->super, 0, sizeof *module - sizeof module->super);
    module->state = MCA_COLL_HIER_FRESH;
    module->max_bytes = SIZE_MAX;
}

/* Runs from disable and again from the destructor. Open MPI 4.1 and 5.0 call disable once for each slot that
 * is still ours. If a wrapper (sync, monitoring) has taken the slot, they never call it. There must be no
 * collective here: MPI_Finalize frees communicators rank by rank. */
static void clean_up(mca_coll_hier_module_t* module)
{
    if (OMPI_MPI_STATE_FINALIZE_STARTED <= ompi_mpi_state) {
        hier_quiesce();
    }
    mca_coll_hier_forget_requests(module);
    mca_coll_hier_break_off_setup(module->setup);
    module->setup = NULL;
    hier_team_destroy(module->team);
    module->team = NULL;
    mca_coll_hier_drop_copies(&module->send_copies);
    mca_coll_hier_drop_copies(&module->receive_copies);
    mca_coll_hier_drop_last(&module->last);
    mca_coll_hier_drop_last(&module->last_started);
    free(module->shards.packed);
    module->shards.packed = NULL;
#if !HIER_MODULE_INSTALLS
    if (NULL != module->fallback_allgather_module) {
        OBJ_RELEASE(module->fallback_allgather_module);
    }
#endif
    mca_coll_hier_drop_others(module);
    module->fallback_allgatherv_module = NULL;
    module->fallback_allgatherv = NULL;
    module->fallback_allgather_module = NULL;
    module->fallback_allgather = NULL;
    module->state = MCA_COLL_HIER_REFUSED;
}

OBJ_CLASS_INSTANCE(mca_coll_hier_module_t, mca_coll_base_module_t, construct, clean_up);

/* A communicator of one rank gets no team. But it gets the module for its staging: stock modules cannot
 * copy device memory. */
mca_coll_base_module_t* mca_coll_hier_comm_query(struct ompi_communicator_t* comm, int* priority)
{
    *priority = mca_coll_hier_component.priority;
    if (0 > *priority || OMPI_COMM_IS_INTER(comm)) {
        return NULL;
    }
    mca_coll_hier_module_t* module = OBJ_NEW(mca_coll_hier_module_t);
    if (NULL == module) {
        return NULL;
    }
    module->counts = mca_coll_hier_counts_of_next_module();
    module->super.coll_module_enable = hier_enable;
    module->super.coll_module_disable = hier_disable;
    module->super.coll_allgather = mca_coll_hier_allgather;
#define OFFER(name) module->super.coll_##name = mca_coll_hier_##name;
    MCA_COLL_HIER_STARTED(OFFER)
#undef OFFER
    mca_coll_hier_offer_others(module);
    return &module->super;
}

/* Open MPI 4.1 and 5.0 install what the module has after it was enabled. There mirrors take part in what the
 * team does not serve. */
static void take_allgatherv(mca_coll_hier_module_t* hier, struct ompi_communicator_t* comm)
{
#if HIER_MODULE_INSTALLS
    hier->fallback_allgatherv = comm->c_coll->coll_allgatherv;
    hier->fallback_allgatherv_module = comm->c_coll->coll_allgatherv_module;
    if (NULL != hier->fallback_allgatherv) {
        MCA_COLL_INSTALL_API(comm, allgatherv, mca_coll_hier_allgatherv, &hier->super, "hier");
    }
#else
    (void)comm;
    hier->fallback_allgatherv = hier->super.coll_allgatherv;
    hier->fallback_allgatherv_module = &hier->super;
    if (NULL != hier->fallback_allgatherv) {
        hier->super.coll_allgatherv = mca_coll_hier_allgatherv;
    }
#endif
}

/* Modules are enabled by rising priority. The module that holds the slot now becomes the fallback. */
static int hier_enable(mca_coll_base_module_t* module, struct ompi_communicator_t* comm)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
    if (NULL == comm->c_coll->coll_allgather || NULL == comm->c_coll->coll_allgather_module) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: nobody else provides allgather on %s: not used there",
                            comm->c_name);
        return OMPI_ERR_NOT_AVAILABLE;
    }
    hier->fallback_allgather = comm->c_coll->coll_allgather;
    hier->fallback_allgather_module = comm->c_coll->coll_allgather_module;
#if HIER_MODULE_INSTALLS
    MCA_COLL_INSTALL_API(comm, allgather, mca_coll_hier_allgather, module, "hier");
#define INSTALL(name)                                                                              \
    MCA_COLL_SAVE_API(comm, name, hier->previous_##name, hier->previous_##name##_module, "hier");  \
    MCA_COLL_INSTALL_API(comm, name, mca_coll_hier_##name, module, "hier");
    MCA_COLL_HIER_STARTED(INSTALL)
#undef INSTALL
#else
    OBJ_RETAIN(hier->fallback_allgather_module); /* the communicator is about to release it */
#endif
    mca_coll_hier_keep_others(hier, comm);
    take_allgatherv(hier, comm);
    return OMPI_SUCCESS;
}

static int hier_disable(mca_coll_base_module_t* module, struct ompi_communicator_t* comm)
{
    mca_coll_hier_module_t* hier = (mca_coll_hier_module_t*)module;
#if HIER_MODULE_INSTALLS
    if (comm->c_coll->coll_allgather_module == module) { /* still ours */
        MCA_COLL_INSTALL_API(comm, allgather, hier->fallback_allgather,
                             hier->fallback_allgather_module, "hier");
    }
    if (comm->c_coll->coll_allgatherv_module == module) {
        MCA_COLL_INSTALL_API(comm, allgatherv, hier->fallback_allgatherv,
                             hier->fallback_allgatherv_module, "hier");
    }
#define RESTORE(name)                                                                              \
    if (comm->c_coll->coll_##name##_module == module) {                                            \
        MCA_COLL_INSTALL_API(comm, name, hier->previous_##name, hier->previous_##name##_module,    \
                             "hier");                                                              \
    }
    MCA_COLL_HIER_STARTED(RESTORE)
#undef RESTORE
#else
    (void)comm;
#endif
    clean_up(hier);
    return OMPI_SUCCESS;
}
