/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call on the communicator's team, part by part. */
#include "coll_hier_run.h"

#include "opal/runtime/opal_progress.h"

/* A small call is over before opal_progress() has asked all of Open MPI's components whether they have
 * something to do. But a program that makes no other calls needs that, too. So every fourth pass goes
 * to opal_progress(), counted over all calls. */
static void progress(hier_team* team)
{
    enum { share = 4 };
    static unsigned calls = 0; /* of all threads */
    if (0 == __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % share) {
        opal_progress();
    } else {
        (void)hier_progress_team(team);
    }
}

static int wait_for_part(const mca_coll_hier_run_t* run, int code)
{
    while (HIER_IN_PROGRESS == code) {
        progress(run->call->module->team);
        mca_coll_hier_end_if_broken(run->call);
        code = hier_test(run->request);
    }
    return mca_coll_hier_error_of_call(run->call, code);
}

/* A rank that cannot pack or unpack takes part in no call any more, and the others must hear of it. */
static int run_parts(mca_coll_hier_run_t* run)
{
    hier_team* team = run->call->module->team;
    while (run->first < run->call->largest) {
        int code = HIER_OK;
        int rc = mca_coll_hier_start_part(run, &code);
        if (OMPI_SUCCESS == rc) {
            rc = wait_for_part(run, code);
        }
        if (OMPI_SUCCESS == rc) {
            rc = mca_coll_hier_end_part(run);
        }
        if (OMPI_SUCCESS != rc) {
            hier_refuse(team);
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_hier_by_team(const mca_coll_hier_call_t* call)
{
    hier_team* team = call->module->team;
    int rc = mca_coll_hier_error_of_call(call, hier_team_error(team));
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    mca_coll_hier_run_t run;
    rc = mca_coll_hier_begin_run(&run, call);
    if (OMPI_SUCCESS != rc) {
        hier_refuse(team);
    } else {
        rc = run_parts(&run);
    }
    const bool has_run = OMPI_SUCCESS == rc;
    rc = mca_coll_hier_end_run(&run, rc);
    if (has_run && OMPI_SUCCESS != rc) {
        hier_refuse(team);
    }
    return OMPI_SUCCESS == rc ? mca_coll_hier_size_mismatch(call) : rc;
}
