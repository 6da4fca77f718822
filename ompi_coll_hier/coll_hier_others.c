/* SPDX-License-Identifier: BSD-3-Clause */
/* Which functions of the other collectives hier installs, and what it keeps of those before. */
#include "coll_hier_others.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "coll_hier.h"

#include "ompi/mca/pml/base/base.h"
#include "opal/runtime/opal_params.h"
#if OMPI_MAJOR_VERSION > 4
#include "opal/mca/accelerator/base/base.h"
#endif

#if HIER_MODULE_INSTALLS
/* Not for Open MPI 6: its accelerator components know GPUs, where they were built. */
void mca_coll_hier_offer_others(mca_coll_hier_module_t* module) { (void)module; }
void mca_coll_hier_keep_others(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    (void)module;
    (void)comm;
}
void mca_coll_hier_drop_others(mca_coll_hier_module_t* module) { (void)module; }
#else

typedef mca_coll_hier_function_t function_t;

/* Where Open MPI keeps the function of a collective. */
typedef struct {
    const char* name;
    size_t in_module; /* offset of the function in a module */
    size_t in_communicator, module_in_communicator;
} row_t;

#define ROW_OF(collective)                                                                         \
    {#collective, offsetof(mca_coll_base_module_t, coll_##collective),                             \
     offsetof(mca_coll_base_comm_coll_t, coll_##collective),                                       \
     offsetof(mca_coll_base_comm_coll_t, coll_##collective##_module)},
static const row_t rows[MCA_COLL_HIER_OTHER_COUNT] = {MCA_COLL_HIER_OTHERS(ROW_OF)};

const char* mca_coll_hier_name_of_other(int id)
{
    static _Thread_local char name[48];
    snprintf(name, sizeof name, "MPI_%c%s", toupper((unsigned char)rows[id].name[0]),
             rows[id].name + 1);
    return name;
}

static function_t* function_at(void* structure, size_t offset)
{
    return (function_t*)((char*)structure + offset);
}

static bool knows_open_mpi_gpus(void)
{
#if OMPI_MAJOR_VERSION > 4
    return 0 !=
           strcmp(opal_accelerator_base_selected_component.base_version.mca_component_name, "null");
#else
    return opal_cuda_support;
#endif
}

/* These move device memory themselves, if their libraries know the GPU. Then calls that only send and receive
 * work, and hier refuses none. */
static bool may_send_device_memory(void)
{
    const char* const pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    return 0 == strcmp(pml, "ucx") || 0 == strcmp(pml, "cm");
}

/* HAN of Open MPI 4.1 gives some communicators up in the middle of a call. Then it calls what it finds in the
 * communicator. That must not be hier, which would call HAN again. */
static bool is_of_han(const mca_coll_base_module_t* module)
{
    return 4 == OMPI_MAJOR_VERSION &&
           0 == strcmp(module->super.obj_class->cls_name, "mca_coll_han_module_t");
}

void mca_coll_hier_offer_others(mca_coll_hier_module_t* module)
{
    /* What a team of hier does not serve has to be served, too. */
    module->super.coll_allgatherv =
        (mca_coll_base_module_allgatherv_fn_t)mca_coll_hier_mirrored(MCA_COLL_HIER_allgatherv);
    if (0 == mca_coll_hier_component.stages_others || knows_open_mpi_gpus()) {
        return;
    }
    for (int i = 0; i < MCA_COLL_HIER_OTHER_COUNT; i++) {
        function_t* const ours = function_at(&module->super, rows[i].in_module);
        const function_t mirrored = mca_coll_hier_mirrored(i);
        if (NULL != mirrored) {
            *ours = mirrored;
        } else if (!may_send_device_memory()) {
            *ours = mca_coll_hier_refusal(i);
        }
    }
}

/* Open MPI installs the module's functions after this. */
void mca_coll_hier_keep_others(mca_coll_hier_module_t* module, struct ompi_communicator_t* comm)
{
    for (int i = 0; i < MCA_COLL_HIER_OTHER_COUNT; i++) {
        const row_t* row = &rows[i];
        mca_coll_hier_previous_t* previous = &module->others[i];
        function_t* ours = function_at(&module->super, row->in_module);
        mca_coll_base_module_t* served_by =
            *(mca_coll_base_module_t**)((char*)comm->c_coll + row->module_in_communicator);
        const function_t now = *function_at(comm->c_coll, row->in_communicator);
        if (NULL == *ours || NULL == now || NULL == served_by || is_of_han(served_by)) {
            *ours = NULL;
            continue;
        }
        OBJ_RETAIN(served_by); /* the communicator is about to release it */
        previous->function = now;
        previous->module = served_by;
    }
}

void mca_coll_hier_drop_others(mca_coll_hier_module_t* module)
{
    for (int i = 0; i < MCA_COLL_HIER_OTHER_COUNT; i++) {
        if (NULL != module->others[i].module) {
            OBJ_RELEASE(module->others[i].module);
        }
        module->others[i] = (mca_coll_hier_previous_t){NULL, NULL, false};
    }
}
#endif
