/* SPDX-License-Identifier: BSD-3-Clause */
/* The same call again.
 *
 * Many programs call with the same arguments in each step. To find out what follows from these takes some 0.3 us. So a
 * communicator's last blocking call stays prepared, like one of a persistent request, and so does its last nonblocking
 * one. While that runs, other nonblocking calls leave it as it is. */
#ifndef MCA_COLL_HIER_LAST_H
#define MCA_COLL_HIER_LAST_H

#include "coll_hier_request.h"

BEGIN_C_DECLS

struct mca_coll_hier_last_t {
    mca_coll_hier_call_t call;
    mca_coll_hier_shards_t shards; /* of the call, if it has any */
    mca_coll_hier_run_t run;
    hier_request* request; /* that hier_prepare has made; NULL: none so far */
    bool is_used;          /* by a nonblocking call, until it is over; any thread may end that */
};

/* Is it prepared for a call with these arguments, in a process that has no memory but the host's? `receive`: what comes
 * from each rank. */
bool mca_coll_hier_is_last(const mca_coll_hier_last_t* last,
                           const mca_coll_hier_collective_t* collective,
                           const mca_coll_hier_buffer_t* send,
                           const mca_coll_hier_buffer_t* receive);

/* In `*place`, where it is made at the first use. NULL: the call is not kept. */
mca_coll_hier_last_t* mca_coll_hier_last_of(const mca_coll_hier_call_t* call,
                                            mca_coll_hier_last_t** place);
/* Keeps the call, whose run comes next, in place of the last one. False: there is no memory, so it is not kept. */
bool mca_coll_hier_keep_call(mca_coll_hier_last_t* last, const mca_coll_hier_call_t* call);
/* Frees it. `*last` may be NULL. */
void mca_coll_hier_drop_last(mca_coll_hier_last_t** last);
/* Is it prepared for the same call, whose buffers are in the same memory? Then fills in what
 * mca_coll_hier_find_memory would. */
bool mca_coll_hier_is_again(const mca_coll_hier_last_t* last, mca_coll_hier_call_t* call);

/* mca_coll_hier_is_last for the last nonblocking call, if nothing uses it and no earlier call waits for its turn. */
bool mca_coll_hier_is_last_started(const mca_coll_hier_module_t* module,
                                   const mca_coll_hier_collective_t* collective,
                                   const mca_coll_hier_buffer_t* send,
                                   const mca_coll_hier_buffer_t* receive);
/* For a nonblocking call that starts, in the thread that starts it. Finds its memory, and its run if that is prepared.
 * Sets request->uses_last unless another call uses it. The next two are with the lock of started calls. */
void mca_coll_hier_take_last(mca_coll_hier_request_t* request);
/* Starts a run that is not prepared, for a request that uses the last one, and prepares it for the next call. */
void mca_coll_hier_start_as_last(mca_coll_hier_request_t* request);
/* The call is over. */
void mca_coll_hier_leave_last(mca_coll_hier_request_t* request);

END_C_DECLS
#endif
