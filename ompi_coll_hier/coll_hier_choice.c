/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides who serves a call: the communicator's team or the fallback module.
 *
 * All ranks must decide alike. So the decision uses only values that are equal on all ranks: the bytes
 * from each rank, the MCA variables, and the state of the team. Addresses, datatypes and kinds of memory
 * never decide. */
#include "coll_hier_request.h"

#include "opal/util/output.h"

/* Set-up takes milliseconds and memory, and many communicators see only a few small calls: those by which
 * the application splits them. All ranks make the same calls, so they count alike. */
enum { large_total = 32768, many_calls = 16 };

static bool is_worth_a_team(mca_coll_hier_module_t* module, size_t total)
{
    const size_t least = mca_coll_hier_component.min_bytes;
    if (0 < least) {
        return total >= least;
    }
    return total >= large_total || ++module->small_calls >= many_calls;
}

/* Says why the fallback module serves a small call: once while the communicator has no team, and once when
 * the team's model finds a call too small. */
static void tell_of_small_call(const mca_coll_hier_call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    if (1 == ompi_comm_size(call->comm) || MCA_COLL_HIER_REFUSED == module->state ||
        call->total > module->max_bytes) {
        return;
    }
    const bool is_stated = 0 < mca_coll_hier_component.min_bytes;
    const size_t by_cost = module->min_bytes[call->collective->id];
    const bool is_fresh = MCA_COLL_HIER_FRESH == module->state && !is_stated;
    const bool is_first = is_fresh ? 1 == module->small_calls : !module->has_told_of_small_calls;
    if (!is_first || 0 != ompi_comm_rank(call->comm)) {
        return;
    }
    if (is_fresh) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: communicator %s: the fallback module serves the first %d "
                            "calls of less than %d bytes in all",
                            call->comm->c_name, many_calls - 1, large_total);
        return;
    }
    module->has_told_of_small_calls = true;
    opal_output_verbose(
        1, mca_coll_hier_component.output,
        "coll:hier: communicator %s: %zu bytes in all are less than %s (%zu): the fallback module "
        "serves such calls%s",
        call->comm->c_name, call->total,
        is_stated ? "coll_hier_min_bytes" : "what the cost model finds worth it",
        is_stated ? mca_coll_hier_component.min_bytes : by_cost,
        call->receive.memory.is_reachable ? "" : ", through memory of the host");
}

/* A team looks for the device that the rank uses: that of the last device memory which was found. */
static mca_coll_hier_server_t choose(mca_coll_hier_call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    if (1 == ompi_comm_size(call->comm)) {
        return MCA_COLL_HIER_BY_FALLBACK;
    }
    mca_coll_hier_wait_for_turn(module);
    if (MCA_COLL_HIER_FRESH == module->state && is_worth_a_team(module, call->total)) {
        mca_coll_hier_find_memory(call);
        mca_coll_hier_build_team(module, call->comm);
    }
    switch (module->state) {
    case MCA_COLL_HIER_BROKEN:
        return MCA_COLL_HIER_BY_NOBODY;
    case MCA_COLL_HIER_READY:
        if (call->total >= module->min_bytes[call->collective->id] &&
            call->total <= module->max_bytes) {
            return MCA_COLL_HIER_BY_TEAM;
        }
        break;
    case MCA_COLL_HIER_FRESH:
    case MCA_COLL_HIER_IN_SETUP:
    case MCA_COLL_HIER_REFUSED:
        break;
    }
    return MCA_COLL_HIER_BY_FALLBACK;
}

mca_coll_hier_server_t mca_coll_hier_choose_started(const mca_coll_hier_call_t* call)
{
    mca_coll_hier_module_t* module = call->module;
    if (1 == ompi_comm_size(call->comm) || call->total < mca_coll_hier_component.min_bytes) {
        return MCA_COLL_HIER_BY_FALLBACK;
    }
    if (MCA_COLL_HIER_FRESH == module->state) {
        mca_coll_hier_begin_team(module, call->comm);
    }
    switch (module->state) {
    case MCA_COLL_HIER_BROKEN:
        return MCA_COLL_HIER_BY_NOBODY;
    case MCA_COLL_HIER_REFUSED:
        return MCA_COLL_HIER_BY_FALLBACK;
    case MCA_COLL_HIER_READY:
        return call->total > module->max_bytes ? MCA_COLL_HIER_BY_FALLBACK : MCA_COLL_HIER_BY_TEAM;
    case MCA_COLL_HIER_FRESH:
    case MCA_COLL_HIER_IN_SETUP:
        break;
    }
    return MCA_COLL_HIER_BY_TEAM;
}

bool mca_coll_hier_serve(mca_coll_hier_call_t* call, int* rc)
{
    switch (choose(call)) {
    case MCA_COLL_HIER_BY_TEAM:
        mca_coll_hier_count_served(call);
        call->team = call->module->team;
        *rc = mca_coll_hier_by_team(call);
        return true;
    case MCA_COLL_HIER_BY_NOBODY:
        *rc = mca_coll_hier_error_of_call(call, HIER_ERR_PEER);
        return true;
    case MCA_COLL_HIER_BY_FALLBACK:
        break;
    }
    if (!hier_memory_is_all_host()) { /* a small call takes less than a microsecond */
        mca_coll_hier_find_memory(call);
    }
    tell_of_small_call(call);
    mca_coll_hier_count_fallback(call);
    return false;
}
