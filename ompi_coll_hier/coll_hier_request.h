/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return before they have run: MPI_Iallgather and MPI_Iallgatherv, and the starts of persistent requests
 * (coll_hier_persistent.h).
 *
 * A communicator's team takes its calls in the same order on all ranks. So nonblocking calls form a line:
 *
 *     turn 7            turn 8                      turn 9            a blocking call
 *     all its parts     the first part runs,        waits             waits until turn 9 has started
 *     have started      others have not started
 *
 * Ranks know at different times how the set-up of the team ends. Then a call is served by messages if there is no
 * team, and not by another module: that one would count its nonblocking calls, on each rank differently. */
#ifndef MCA_COLL_HIER_REQUEST_H
#define MCA_COLL_HIER_REQUEST_H

#include "coll_hier_messages.h"
#include "coll_hier_run.h"

#include "ompi/mca/coll/base/coll_base_util.h"

BEGIN_C_DECLS

typedef struct mca_coll_hier_request_t {
    /* There Open MPI keeps the datatypes until the call is over. */
    ompi_coll_base_nbc_request_t super;
    mca_coll_hier_call_t call;
    mca_coll_hier_shards_t shards; /* of MPI_Iallgatherv */
    mca_coll_hier_copies_t *send_copies, *receive_copies;
    hier_team* own_team; /* of a persistent request; NULL: it goes by messages */
    struct mca_coll_hier_request_t* next_owner; /* the next request with a team */
    int tag;                                    /* of the messages */
    unsigned turn;
    bool is_in_line; /* the turn has not been passed on */
    bool is_listed;  /* the progress loop moves it */
    bool is_open;    /* others than its owner may touch it; to be read in any thread */
    bool uses_last;  /* the prepared run of coll_hier_last.h */
    enum {
        MCA_COLL_HIER_WAITS,
        MCA_COLL_HIER_WITH_TEAM,
        MCA_COLL_HIER_WITH_MESSAGES,
        MCA_COLL_HIER_ENDED
    } state;
    mca_coll_hier_run_t run;
    mca_coll_hier_messages_t messages;
    int rc;
} mca_coll_hier_request_t;

/* REQUEST_PENDING, REQUEST_COMPLETED, or who waits in Open MPI. */
static inline void** mca_coll_hier_state_of(mca_coll_hier_request_t* request)
{
    return (void**)&request->super.super.req_complete;
}

/* Does Open MPI know that the call is over? */
static inline bool mca_coll_hier_is_complete(mca_coll_hier_request_t* request)
{
    return REQUEST_COMPLETED == __atomic_load_n(mca_coll_hier_state_of(request), __ATOMIC_ACQUIRE);
}

/* coll_hier_request.c */
/* With the component. */
void mca_coll_hier_open_requests(void);
void mca_coll_hier_close_requests(void);
/* NULL: there is no memory, and the job ends. */
mca_coll_hier_request_t* mca_coll_hier_new_request(struct ompi_communicator_t* comm);
/* Fills in what Open MPI reads of a request. request->call has its arguments. */
void mca_coll_hier_begin_request(mca_coll_hier_request_t* request, bool is_persistent);
/* Nonblocking calls that go by messages have a tag each, and the ranks count them alike. So a call that needs none takes
 * one, too. */
int mca_coll_hier_reserve_tag(struct ompi_communicator_t* comm);
/* Drops what request->call has allocated. */
void mca_coll_hier_drop_call(mca_coll_hier_request_t* request);
/* MPI allows this only for a call that is over. */
int mca_coll_hier_free_request(ompi_request_t** handle);

/* coll_hier_started.c */
void mca_coll_hier_open_started(void);
void mca_coll_hier_close_started(void);
/* Of the list of started calls. One thread at a time moves what is on it; the team's data moves in any thread. */
void mca_coll_hier_lock_started(void);
void mca_coll_hier_unlock_started(void);
/* With the lock; or before the request is on the list, if its team is its own or no call waits for its turn. True: the
 * call is over. */
bool mca_coll_hier_move_request(mca_coll_hier_request_t* request);
/* With the lock: the progress loop moves the call from now on. */
void mca_coll_hier_add_started(mca_coll_hier_request_t* request);
/* Without the lock: tells Open MPI that the call is over, unless mca_coll_hier_complete_early has. `in_start`: of the
 * call, which has not returned. */
void mca_coll_hier_complete(mca_coll_hier_request_t* request, bool in_start);
/* A hier_call.on_success: tells Open MPI before the progress loop does. `request`: a mca_coll_hier_request_t. */
void mca_coll_hier_complete_early(void* request);
/* Without the lock, for an owner who knows that the call is over: so does the progress loop, afterwards. */
void mca_coll_hier_settle(mca_coll_hier_request_t* request);
/* Without the lock: a call has ended without a pass of opal_progress(). Makes one now and then, because what else the
 * program has started needs it. */
void mca_coll_hier_attend(void);
/* Moves all started calls of the process. Returns how many are over. */
int mca_coll_hier_progress_requests(void);
/* Does any started call run? */
bool mca_coll_hier_has_requests(void);
/* Have all calls that were started before been given to the team? */
bool mca_coll_hier_is_next_turn(const mca_coll_hier_module_t* module);
/* A blocking call waits here, until all calls that were started before it have been given to the team. */
void mca_coll_hier_wait_for_turn(const mca_coll_hier_module_t* module);
/* The communicator is going away. Its calls never end. */
void mca_coll_hier_forget_requests(const mca_coll_hier_module_t* module);

/* coll_hier_start.c */
/* Starts request->call, whose arguments have been filled in. `*handle` is what the application gets. */
int mca_coll_hier_start_once(mca_coll_hier_request_t* request, ompi_request_t** handle);
/* Starts the call of a request that has begun. */
void mca_coll_hier_start(mca_coll_hier_request_t* request);
/* The quick way, for MPI_Iallgather: if the last nonblocking call (coll_hier_last.h) has the same arguments, it is started
 * once more, and `*rc` is the result of MPI_Iallgather. False: nothing has happened. `receive`: what comes from each rank. */
bool mca_coll_hier_start_again(mca_coll_hier_module_t* module,
                               const mca_coll_hier_collective_t* collective,
                               const mca_coll_hier_buffer_t* send,
                               const mca_coll_hier_buffer_t* receive, ompi_request_t** handle,
                               int* rc);

END_C_DECLS
#endif
