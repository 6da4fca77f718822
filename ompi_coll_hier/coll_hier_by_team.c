/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call on the communicator's team, part by part. */
#include "coll_hier_run.h"

#include "opal/runtime/opal_progress.h"

/* A rank that cannot take part, pack or unpack takes part in no call any more, and the others must hear of it. */
static void end(mca_coll_hier_run_t* run, int rc)
{
    hier_team* team = run->call->team;
    if (OMPI_SUCCESS != rc) {
        hier_refuse(team);
    }
    run->rc = mca_coll_hier_end_run(run, rc);
    if (OMPI_SUCCESS == rc && OMPI_SUCCESS != run->rc) {
        hier_refuse(team);
    }
    if (OMPI_SUCCESS == run->rc) {
        run->rc = mca_coll_hier_size_mismatch(run->call);
    }
    run->is_over = true;
}

static void start_part(mca_coll_hier_run_t* run)
{
    const int rc = mca_coll_hier_start_part(run);
    if (OMPI_SUCCESS != rc) {
        end(run, rc);
    }
}

void mca_coll_hier_start_run(mca_coll_hier_run_t* run, const mca_coll_hier_call_t* call)
{
    *run = (mca_coll_hier_run_t){.call = call};
    run->rc = mca_coll_hier_error_of_call(call, hier_team_error(call->team));
    if (OMPI_SUCCESS != run->rc) {
        run->is_over = true;
        return;
    }
    const int rc = mca_coll_hier_begin_run(run);
    if (OMPI_SUCCESS == rc) {
        start_part(run);
    } else {
        end(run, rc);
    }
}

void mca_coll_hier_start_run_again(mca_coll_hier_run_t* run)
{
    run->is_over = false;
    run->first = 0;
    mca_coll_hier_start_prepared(run);
}

bool mca_coll_hier_move_run(mca_coll_hier_run_t* run)
{
    if (run->is_over) {
        return true;
    }
    if (HIER_IN_PROGRESS == run->code) {
        mca_coll_hier_end_if_broken(run->call);
        run->code = hier_test(run->request);
        if (HIER_IN_PROGRESS == run->code) {
            return false;
        }
    }
    int rc = mca_coll_hier_error_of_call(run->call, run->code);
    if (OMPI_SUCCESS == rc) {
        rc = mca_coll_hier_end_part(run);
    }
    if (OMPI_SUCCESS == rc && run->first < run->call->largest) {
        start_part(run);
    } else {
        end(run, rc);
    }
    return run->is_over;
}

bool mca_coll_hier_has_started(const mca_coll_hier_run_t* run)
{
    return run->is_over || run->first + run->bytes == run->call->largest;
}

/* A small call is over before opal_progress() has asked all of Open MPI's components whether they have
 * something to do. But a program that makes no other calls needs that, too. So every sixteenth pass goes
 * to opal_progress(), counted over all calls of the thread. */
static void progress(hier_team* team)
{
    enum { share = 16 };
    static _Thread_local unsigned passes = 0;
    if (0 == ++passes % share) {
        opal_progress();
    }
    (void)hier_progress_team(team);
}

int mca_coll_hier_by_team(const mca_coll_hier_call_t* call)
{
    mca_coll_hier_run_t run;
    mca_coll_hier_start_run(&run, call);
    while (!mca_coll_hier_move_run(&run)) {
        progress(call->team);
    }
    return run.rc;
}
