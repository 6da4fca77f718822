/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call on the communicator's team, part by part. */
#include "coll_hier_last.h"

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

void mca_coll_hier_start_run(mca_coll_hier_run_t* run, const mca_coll_hier_call_t* call,
                             hier_request* prepared)
{
    *run = (mca_coll_hier_run_t){.call = call, .request = prepared};
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
 * to opal_progress(), counted over all calls of the communicator. */
static void attend(mca_coll_hier_module_t* module)
{
    enum { share = 16 };
    if (0 == ++module->passes % share) {
        opal_progress();
    }
}

/* Also a call that has ended in its start makes a pass. */
static int finish(mca_coll_hier_run_t* run)
{
    for (;;) {
        attend(run->call->module);
        if (mca_coll_hier_move_run(run)) {
            return run->rc;
        }
        (void)hier_progress_team(run->call->team);
    }
}

/* What is prepared has no staging and no parts, so that nothing is left to do behind it. */
static int run_again(mca_coll_hier_last_t* last)
{
    mca_coll_hier_start_run_again(&last->run);
    if (HIER_OK != last->run.code) {
        return finish(&last->run);
    }
    attend(last->call.module);
    return mca_coll_hier_size_mismatch(&last->call);
}

bool mca_coll_hier_serve_again(mca_coll_hier_module_t* module,
                               const mca_coll_hier_collective_t* collective,
                               const mca_coll_hier_buffer_t* send,
                               const mca_coll_hier_buffer_t* receive, int* rc)
{
    mca_coll_hier_last_t* last = module->last;
    if (NULL == last || MCA_COLL_HIER_READY != module->state ||
        !mca_coll_hier_is_last(last, collective, send, receive)) {
        return false;
    }
    mca_coll_hier_wait_for_turn(module);
    mca_coll_hier_count_served(&last->call);
    *rc = run_again(last);
    return true;
}

int mca_coll_hier_by_team(mca_coll_hier_call_t* call)
{
    mca_coll_hier_last_t* last = mca_coll_hier_last_of(call, &call->module->last);
    if (NULL != last && mca_coll_hier_is_again(last, call)) {
        return run_again(last);
    }
    mca_coll_hier_find_memory(call);
    if (NULL == last || !mca_coll_hier_keep_call(last, call)) {
        mca_coll_hier_run_t run;
        mca_coll_hier_start_run(&run, call, NULL);
        return finish(&run);
    }
    last->call.is_repeated = true;
    mca_coll_hier_start_run(&last->run, &last->call, last->request);
    last->request = last->run.is_prepared ? last->run.request : last->request;
    return finish(&last->run);
}
