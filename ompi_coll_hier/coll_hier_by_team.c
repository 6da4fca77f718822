/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a call on the communicator's team, part by part. */
#include "coll_hier_run.h"

#include <stdlib.h>

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

/* ---- the same call again
 *
 * Many programs call with the same arguments in each step. To find out what follows from these takes 0.3 us, a quarter
 * of a small call's time. So the last call stays prepared, like one of a persistent request. */

struct mca_coll_hier_last_t {
    mca_coll_hier_call_t call;
    mca_coll_hier_run_t run;
    hier_request* request; /* that hier_prepare has made; NULL: none so far */
};

/* Of other datatypes, or of counts, the same address may mean something else the next time. */
static bool may_come_again(const mca_coll_hier_call_t* call)
{
    return NULL == call->shards && mca_coll_hier_has_predefined_types(call);
}

static bool are_same(const mca_coll_hier_elements_t* a, const mca_coll_hier_elements_t* b)
{
    return a->base == b->base && a->count == b->count && a->type == b->type;
}

/* All but the memory at the buffers' addresses. */
static bool is_prepared(const mca_coll_hier_last_t* last, const mca_coll_hier_call_t* call)
{
    return last->run.is_prepared && last->call.collective == call->collective &&
           last->call.in_place == call->in_place && are_same(&last->call.receive, &call->receive) &&
           (call->in_place || are_same(&last->call.send, &call->send));
}

/* A process without a GPU has one kind of memory, and nothing to look for. Else fills in the call's. */
static bool has_same_memory(const mca_coll_hier_last_t* last, mca_coll_hier_call_t* call)
{
    if (HIER_MEMORY_HOST == last->call.receive.memory.kind &&
        HIER_MEMORY_HOST == last->call.send.memory.kind && hier_memory_is_all_host()) {
        return true;
    }
    mca_coll_hier_find_memory(call);
    return mca_coll_hier_is_same_memory(&last->call.receive.memory, &call->receive.memory) &&
           (call->in_place ||
            mca_coll_hier_is_same_memory(&last->call.send.memory, &call->send.memory));
}

/* NULL: the call is not kept. */
static mca_coll_hier_last_t* last_of(const mca_coll_hier_call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    if (!may_come_again(call)) {
        return NULL;
    }
    if (NULL == module->last) {
        module->last = (mca_coll_hier_last_t*)calloc(1, sizeof *module->last);
    }
    return module->last;
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

int mca_coll_hier_by_team(mca_coll_hier_call_t* call)
{
    mca_coll_hier_last_t* last = last_of(call);
    if (NULL != last && is_prepared(last, call) && has_same_memory(last, call)) {
        return run_again(last);
    }
    mca_coll_hier_find_memory(call);
    if (NULL == last) {
        mca_coll_hier_run_t run;
        mca_coll_hier_start_run(&run, call, NULL);
        return finish(&run);
    }
    last->call = *call;
    last->call.is_repeated = true;
    mca_coll_hier_start_run(&last->run, &last->call, last->request);
    last->request = last->run.is_prepared ? last->run.request : last->request;
    return finish(&last->run);
}
