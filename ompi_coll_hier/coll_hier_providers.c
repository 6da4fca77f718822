/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes `--mca coll hier` work. That is a list of the components that may be loaded. With hier alone, no
 * component would provide the other collectives, and MPI_Init would abort.
 *
 * If the selection names components, but none that provide everything, we load the missing providers. We
 * do so inside our init_query, through the MCA base's own functions:
 *
 *   framework_components while mca_coll_base_find_available walks it:
 *       hier (its init_query runs now) | found by us: tuned basic libnbc inter self
 *   after we have opened and queried each of ours:
 *       self inter libnbc basic tuned | hier        <- the running loop goes on behind hier
 */
#include "coll_hier.h"

#include <string.h>

#include "ompi/proc/proc.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

static bool names(char** list, const char* name)
{
    for (int i = 0; NULL != list && NULL != list[i]; i++) {
        if (0 == strcmp(list[i], name)) {
            return true;
        }
    }
    return false;
}

/* The providers that the selection lacks, comma-separated. The caller frees them. NULL: none are
 * needed. */
static char* missing_providers(const char* selection)
{
    if (NULL == selection || '\0' == *selection || '^' == *selection) {
        return NULL; /* such a selection excludes only the components that it names */
    }
    char** selected = opal_argv_split(selection, ',');
    char** providers = opal_argv_split(mca_coll_hier_component.providers, ',');
    char** missing = NULL;
    if (!names(selected, "basic") || !names(selected, "libnbc")) {
        for (int i = 0; NULL != providers && NULL != providers[i]; i++) {
            if (!names(selected, providers[i])) {
                opal_argv_append_nosize(&missing, providers[i]);
            }
        }
    }
    char* joined = NULL == missing ? NULL : opal_argv_join(missing, ',');
    opal_argv_free(selected);
    opal_argv_free(providers);
    opal_argv_free(missing);
    return joined;
}

static bool start_provider(mca_base_component_t* component, bool progress_threads, bool mpi_threads)
{
    if (NULL != component->mca_register_component_params &&
        OPAL_SUCCESS != component->mca_register_component_params()) {
        return false;
    }
    if (NULL != component->mca_open_component && OPAL_SUCCESS != component->mca_open_component()) {
        return false;
    }
    const mca_coll_base_component_t* coll = (const mca_coll_base_component_t*)component;
    return NULL != coll->collm_init_query &&
           OMPI_SUCCESS == coll->collm_init_query(progress_threads, mpi_threads);
}

void mca_coll_hier_add_providers(bool progress_threads, bool mpi_threads)
{
    mca_base_framework_t* framework = &ompi_coll_base_framework;
    const int output = mca_coll_hier_component.output;
    char* wanted = missing_providers(framework->framework_selection);
    if (NULL == wanted) {
        return;
    }
    const size_t before = opal_list_get_size(&framework->framework_components);
    char* selection = framework->framework_selection;
    framework->framework_selection = wanted;
    const int rc = mca_base_component_find(NULL, framework, false, true);
    framework->framework_selection = selection;
    if (OPAL_SUCCESS != rc) {
        opal_output(0,
                    "coll:hier: some of the components \"%s\" (coll_hier_providers) were not found",
                    wanted);
    }
    free(wanted);

    char** working = NULL;
    for (size_t added = opal_list_get_size(&framework->framework_components) - before; added > 0;
         added--) {
        mca_base_component_list_item_t* item =
            (mca_base_component_list_item_t*)opal_list_remove_last(
                &framework->framework_components);
        mca_base_component_t* component = (mca_base_component_t*)item->cli_component;
        const bool works = start_provider(component, progress_threads, mpi_threads);
        if (works) {
            opal_argv_append_nosize(&working, component->mca_component_name);
            opal_list_prepend(&framework->framework_components, &item->super);
        } else {
            mca_base_component_close(component, framework->framework_output);
            OBJ_RELEASE(item);
        }
    }
    char* list = opal_argv_join(working, ',');
    /* All ranks would say the same. */
    const bool is_first = 0 == ompi_proc_local()->super.proc_name.vpid;
    opal_output_verbose(
        is_first ? 1 : 10, output,
        "coll:hier: the selection \"%s\" leaves the other collectives to nobody: added %s",
        selection, list);
    free(list);
    opal_argv_free(working);
}
