/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_request.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define VERSION(major, minor, release) TEXT(major) "." TEXT(minor) "." TEXT(release)
#define CALLER                                                                                     \
    "coll/hier " VERSION(HIER_VERSION_MAJOR, HIER_VERSION_MINOR,                                   \
                         HIER_VERSION_RELEASE) ", Open MPI " VERSION(OMPI_MAJOR_VERSION,           \
                                                                     OMPI_MINOR_VERSION,           \
                                                                     OMPI_RELEASE_VERSION)

static bool progress_registered = false;

/* All waits of all calls of MPI pass here, most of them while hier has no call. Then a pass now and then is enough for
 * peers that wait for an answer. */
static bool is_time_to_answer(void)
{
    enum { share = 4 };
    static unsigned passes; /* if two threads count at once, one is lost */
    const unsigned now = 1 + __atomic_load_n(&passes, __ATOMIC_RELAXED);
    __atomic_store_n(&passes, now, __ATOMIC_RELAXED);
    return 0 == now % share;
}

/* MPI_Finalize lets ranks go one by one, and frees communicators late. So from its start on we send nothing
 * to other ranks, unless a collective is called. */
static int progress(void)
{
    if (OMPI_MPI_STATE_FINALIZE_STARTED <= ompi_mpi_state) {
        hier_quiesce();
    }
    if (!mca_coll_hier_has_requests()) {
        return is_time_to_answer() ? hier_progress() : 0;
    }
    int moved = hier_progress() + mca_coll_hier_progress_requests();
    /* A small call is over before opal_progress() has asked all other components. */
    for (int i = 1; i < 4 && 0 == moved && mca_coll_hier_has_requests(); i++) {
        moved = hier_progress() + mca_coll_hier_progress_requests();
    }
    return moved;
}

static int hier_open(void);
static int hier_close(void);
static int hier_init_query(bool progress_threads, bool mpi_threads);

mca_coll_hier_component_t mca_coll_hier_component = {
    .super =
        {
            .collm_version =
                {
                    HIER_COLL_VERSION,
                    .mca_component_name = "hier",
                    MCA_BASE_MAKE_VERSION(component, HIER_VERSION_MAJOR, HIER_VERSION_MINOR,
                                          HIER_VERSION_RELEASE),
                    .mca_open_component = hier_open,
                    .mca_close_component = hier_close,
                    .mca_register_component_params = mca_coll_hier_register,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = hier_init_query,
            .collm_comm_query = mca_coll_hier_comm_query,
        },
    .output = -1,
};

/* A thread of hier's own may have something to say. Open MPI's output is not made for that, unless the application has
 * threads itself. */
static pthread_t thread_of_mpi;

static void log_line(int level, const char* line)
{
    if (opal_using_threads() || pthread_equal(pthread_self(), thread_of_mpi)) {
        opal_output_verbose(level, mca_coll_hier_component.output, "coll:hier: %s", line);
    } else if (level <= mca_coll_hier_component.verbose) {
        fprintf(stderr, "[%ld] coll:hier: %s\n", (long)getpid(), line);
    }
}

static int fault_of_params;

static int hier_open(void)
{
    hier_give_signals_back();
    mca_coll_hier_open_requests();
    thread_of_mpi = pthread_self();
    /* A process that refuses its settings must not tell others that it has hier. */
    fault_of_params = mca_coll_hier_read_params();
    mca_coll_hier_component.output = opal_output_open(NULL);
    opal_output_set_verbosity(mca_coll_hier_component.output, mca_coll_hier_component.verbose);
    mca_coll_hier_component.config.log_level = mca_coll_hier_component.verbose;
    mca_coll_hier_component.config.log = log_line;
    mca_coll_hier_component.config.caller = CALLER;
    if (OMPI_SUCCESS == fault_of_params &&
        HIER_OK != hier_load_tuning(&mca_coll_hier_component.config)) {
        opal_output(0, "coll:hier: coll_hier_tuning_file is broken: coll/hier is not used");
        fault_of_params = OMPI_ERR_BAD_PARAM;
    }
    if (OMPI_SUCCESS == fault_of_params && 0 <= mca_coll_hier_component.priority) {
        mca_coll_hier_publish();
    }
    return OMPI_SUCCESS;
}

static int hier_close(void)
{
    if (progress_registered) {
        progress_registered = false;
        opal_progress_unregister(progress);
    }
    hier_quiesce();
    mca_coll_hier_close_requests();
    hier_finalize();
    mca_coll_hier_forget_answers();
    if (0 <= mca_coll_hier_component.output) {
        opal_output_close(mca_coll_hier_component.output);
        mca_coll_hier_component.output = -1;
    }
    return OMPI_SUCCESS;
}

static int hier_init_query(bool progress_threads, bool mpi_threads)
{
    if (OMPI_SUCCESS != fault_of_params) {
        return fault_of_params;
    }
    if (0 > mca_coll_hier_component.priority && 0 == ompi_proc_local()->super.proc_name.vpid) {
        log_line(1, "switched off: coll_hier_priority is -1");
    }
    hier_init(&mca_coll_hier_component.config);
    mca_coll_hier_add_providers(progress_threads, mpi_threads);
    /* This costs nothing while no call of ours is running. */
    progress_registered = OPAL_SUCCESS == opal_progress_register(progress);
    if (!progress_registered) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}
