/* SPDX-License-Identifier: BSD-3-Clause */
/* An allgather by messages, for started calls that no team serves: each rank sends its block to every rank. */
#ifndef MCA_COLL_HIER_MESSAGES_H
#define MCA_COLL_HIER_MESSAGES_H

#include "coll_hier_call.h"
#include "coll_hier_staging.h"

#include "ompi/request/request.h"

BEGIN_C_DECLS

typedef struct {
    const mca_coll_hier_call_t* call;
    ompi_request_t** requests;            /* receives and sends that are not over */
    int count, first;                     /* all before `first` are over */
    mca_coll_hier_staging_t sent, result; /* for device memory */
    int rc;
} mca_coll_hier_messages_t;

/* `tag`: equal on all ranks, and of no other messages on the communicator. */
void mca_coll_hier_start_messages(mca_coll_hier_messages_t* messages,
                                  const mca_coll_hier_call_t* call, int tag);
/* Does not wait. True: the call is over, with messages->rc. */
bool mca_coll_hier_move_messages(mca_coll_hier_messages_t* messages);

END_C_DECLS
#endif
