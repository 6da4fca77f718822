/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_setup.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

typedef enum {
    NO_QUESTION,
    EXCHANGE, /* is to be started */
    EXCHANGING,
    PRESENCE,
    ANSWERED,
    OVER /* the thread ends */
} state_t;

struct mca_coll_hier_setup_t {
    struct ompi_communicator_t* comm;
    mca_coll_hier_plan_t plan;
    pthread_t thread;
    pthread_mutex_t lock; /* of state and is_broken_off */
    pthread_cond_t changed;
    state_t state;
    bool is_broken_off;
    /* The question, and the answer. Whose turn it is, by the state, may touch them. */
    const void* out;
    void* in;
    size_t out_bytes, in_bytes;
    int to, from;
    ompi_request_t *sending, *receiving;
    int tag;
    int answer;
    /* The result. */
    int code;
    hier_team* team;
};

/* ---- in the thread of the set-up */

enum { nobody_answers = -1, nap_ns = 2000000 };

static int ask(mca_coll_hier_setup_t* setup, state_t question)
{
    pthread_mutex_lock(&setup->lock);
    setup->state = question;
    while (ANSWERED != setup->state && !setup->is_broken_off) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += nap_ns;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        if (0 != pthread_cond_timedwait(&setup->changed, &setup->lock, &soon)) {
            /* The application computes. Other ranks may wait for an answer of the network. */
            pthread_mutex_unlock(&setup->lock);
            (void)hier_progress();
            pthread_mutex_lock(&setup->lock);
        }
    }
    const int answer = setup->is_broken_off ? nobody_answers : setup->answer;
    setup->state = NO_QUESTION;
    pthread_mutex_unlock(&setup->lock);
    return answer;
}

static int ask_for_exchange(void* context, const void* out, size_t out_bytes, int to, void* in,
                            size_t in_bytes, int from)
{
    mca_coll_hier_setup_t* setup = (mca_coll_hier_setup_t*)context;
    setup->out = out;
    setup->out_bytes = out_bytes;
    setup->to = to;
    setup->in = in;
    setup->in_bytes = in_bytes;
    setup->from = from;
    return ask(setup, EXCHANGE);
}

static int ask_for_presence(void* context, int rank)
{
    mca_coll_hier_setup_t* setup = (mca_coll_hier_setup_t*)context;
    setup->to = rank;
    return ask(setup, PRESENCE);
}

/* The thread may share the core of the application. */
static void rest(void)
{
    const struct timespec nap = {.tv_nsec = 20000};
    (void)nanosleep(&nap, NULL);
}

static void* run(void* argument)
{
    mca_coll_hier_setup_t* setup = (mca_coll_hier_setup_t*)argument;
    setup->code = hier_team_create(&setup->plan.config, &setup->plan.bootstrap, &setup->team);
    pthread_mutex_lock(&setup->lock);
    setup->state = OVER;
    pthread_mutex_unlock(&setup->lock);
    return NULL;
}

/* ---- in threads of the application */

/* Signals are for the application's threads, but for faults: those are the thread's own, and may have a
 * handler. */
static bool start_thread(mca_coll_hier_setup_t* setup)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&setup->thread, NULL, run, setup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0 == error;
}

static void drop(mca_coll_hier_setup_t* setup)
{
    pthread_cond_destroy(&setup->changed);
    pthread_mutex_destroy(&setup->lock);
    free(setup);
}

mca_coll_hier_setup_t* mca_coll_hier_begin_setup(struct ompi_communicator_t* comm)
{
    mca_coll_hier_setup_t* setup = (mca_coll_hier_setup_t*)calloc(1, sizeof *setup);
    if (NULL == setup) {
        return NULL;
    }
    setup->comm = comm;
    setup->tag = ompi_coll_base_nbc_reserve_tags(comm, 1);
    setup->sending = setup->receiving = MPI_REQUEST_NULL;
    pthread_mutex_init(&setup->lock, NULL);
    pthread_cond_init(&setup->changed, NULL);
    mca_coll_hier_plan_team(comm, &setup->plan);
    setup->plan.config.progress = rest;
    setup->plan.bootstrap.context = setup;
    setup->plan.bootstrap.exchange = ask_for_exchange;
    setup->plan.bootstrap.is_present = ask_for_presence;
    if (!start_thread(setup)) {
        drop(setup);
        return NULL;
    }
    return setup;
}

static void set_state(mca_coll_hier_setup_t* setup, state_t state)
{
    pthread_mutex_lock(&setup->lock);
    setup->state = state;
    pthread_cond_signal(&setup->changed);
    pthread_mutex_unlock(&setup->lock);
}

static void answer(mca_coll_hier_setup_t* setup, int what)
{
    setup->answer = what;
    set_state(setup, ANSWERED);
}

/* The tag is that of no other messages of the communicator. */
static void start_exchange(mca_coll_hier_setup_t* setup)
{
    const int tag = setup->tag;
    int rc = OMPI_SUCCESS;
    if (0 <= setup->from) {
        rc = MCA_PML_CALL(irecv(setup->in, setup->in_bytes, MPI_BYTE, setup->from, tag, setup->comm,
                                &setup->receiving));
    }
    if (OMPI_SUCCESS == rc && 0 <= setup->to) {
        rc = MCA_PML_CALL(isend(setup->out, setup->out_bytes, MPI_BYTE, setup->to, tag,
                                MCA_PML_BASE_SEND_STANDARD, setup->comm, &setup->sending));
    }
    if (OMPI_SUCCESS == rc) {
        set_state(setup, EXCHANGING);
        return;
    }
    if (MPI_REQUEST_NULL != setup->receiving) {
        (void)ompi_request_cancel(setup->receiving);
        (void)ompi_request_wait(&setup->receiving, MPI_STATUS_IGNORE);
    }
    answer(setup, rc);
}

static int end_message(ompi_request_t** request)
{
    if (MPI_REQUEST_NULL == *request) {
        return OMPI_SUCCESS;
    }
    const int rc = (*request)->req_status.MPI_ERROR;
    (void)ompi_request_free(request);
    *request = MPI_REQUEST_NULL;
    return rc;
}

static void end_exchange(mca_coll_hier_setup_t* setup)
{
    if (hier_is_over(setup->receiving) && hier_is_over(setup->sending)) {
        const int received = end_message(&setup->receiving);
        const int sent = end_message(&setup->sending);
        answer(setup, OMPI_SUCCESS != received ? received : sent);
    }
}

bool mca_coll_hier_move_setup(mca_coll_hier_setup_t* setup, int* code, hier_team** team)
{
    pthread_mutex_lock(&setup->lock);
    const state_t state = setup->state;
    pthread_mutex_unlock(&setup->lock);
    switch (state) {
    case EXCHANGE:
        start_exchange(setup);
        break;
    case EXCHANGING:
        end_exchange(setup);
        break;
    case PRESENCE:
        answer(setup, mca_coll_hier_is_present(setup->comm, setup->to));
        break;
    case OVER:
        pthread_join(setup->thread, NULL);
        *code = setup->code;
        *team = setup->team;
        drop(setup);
        return true;
    case NO_QUESTION:
    case ANSWERED:
        break;
    }
    return false;
}

/* A message that is under way would use memory that the thread frees. */
static void take_back(ompi_request_t* message)
{
    if (!hier_is_over(message)) {
        (void)ompi_request_cancel(message);
    }
}

void mca_coll_hier_break_off_setup(mca_coll_hier_setup_t* setup)
{
    if (NULL == setup) {
        return;
    }
    take_back(setup->receiving);
    take_back(setup->sending);
    pthread_mutex_lock(&setup->lock);
    setup->is_broken_off = true;
    pthread_cond_signal(&setup->changed);
    pthread_mutex_unlock(&setup->lock);
    pthread_join(setup->thread, NULL);
    if (HIER_OK == setup->code) {
        hier_team_destroy(setup->team);
    }
    drop(setup);
}
