/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a rank have this component, with the same settings? A rank without it would answer the
 * messages of our set-up with its own data. So every process publishes its settings in Open MPI's modex, before
 * MPI_Init returns anywhere. */
#include "coll_hier.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/group/group.h"
#include "opal/class/opal_hash_table.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#define KEY "coll.hier.settings"
enum { SAME, OTHER };

static char own[128]; /* zeros behind the text */
static const hier_modex_size_t own_size = sizeof own;
static opal_hash_table_t answers; /* by process: SAME or OTHER */
static bool has_answers;
static pthread_mutex_t answers_mutex = PTHREAD_MUTEX_INITIALIZER;

void mca_coll_hier_publish(void)
{
    int rc;
    snprintf(own, sizeof own, "%d.%d.%d min_bytes %zu priority %d", HIER_VERSION_MAJOR,
             HIER_VERSION_MINOR, HIER_VERSION_RELEASE, mca_coll_hier_component.min_bytes,
             mca_coll_hier_component.priority);
    OPAL_MODEX_SEND_STRING(rc, HIER_MODEX_GLOBAL, KEY, own, own_size);
    if (OPAL_SUCCESS != rc) {
        opal_output_verbose(1, mca_coll_hier_component.output,
                            "coll:hier: cannot tell the other processes of coll/hier: %d", rc);
    }
}

static int ask(opal_process_name_t name)
{
    uint8_t* theirs = NULL;
    hier_modex_size_t bytes = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, KEY, &name, &theirs, &bytes);
    const bool is_same =
        OPAL_SUCCESS == rc && bytes == own_size && 0 == memcmp(theirs, own, sizeof own);
    free(theirs);
    return is_same ? SAME : OTHER;
}

static int answer_of(opal_process_name_t name)
{
    uint64_t key;
    void* known = NULL;
    memcpy(&key, &name, sizeof key);
    if (!has_answers) {
        OBJ_CONSTRUCT(&answers, opal_hash_table_t);
        has_answers = OPAL_SUCCESS == opal_hash_table_init(&answers, 64);
    }
    if (has_answers && OPAL_SUCCESS == opal_hash_table_get_value_uint64(&answers, key, &known)) {
        return (int)(intptr_t)known;
    }
    const int answer = ask(name);
    if (has_answers) {
        (void)opal_hash_table_set_value_uint64(&answers, key, (void*)(intptr_t)answer);
    }
    return answer;
}

/* Asked only for the ranks with which the first messages of set-up are exchanged, so a process looks up few others. If
 * a process cannot read even its own words, the answer is yes: nothing is known. */
int mca_coll_hier_is_present(void* context, int rank)
{
    struct ompi_communicator_t* comm = (struct ompi_communicator_t*)context;
    const int self = ompi_comm_rank(comm);
    pthread_mutex_lock(&answers_mutex);
    const bool can_ask = SAME == answer_of(OPAL_PROC_MY_NAME);
    const bool is_absent =
        can_ask && OTHER == answer_of(ompi_group_get_proc_name(comm->c_local_group, rank));
    pthread_mutex_unlock(&answers_mutex);
    /* Several ranks know. One of them says so. */
    if (is_absent && (self + 1) % ompi_comm_size(comm) == rank) {
        opal_output(0,
                    "coll:hier: rank %d of communicator %s has no coll/hier, or another version, "
                    "coll_hier_min_bytes or coll_hier_priority than rank %d: the fallback module "
                    "serves its calls",
                    rank, comm->c_name, self);
    }
    return is_absent ? 0 : 1;
}

void mca_coll_hier_forget_answers(void)
{
    if (has_answers) {
        OBJ_DESTRUCT(&answers);
    }
    has_answers = false;
}
