/* SPDX-License-Identifier: BSD-3-Clause */
/* A call on its way through the team.
 *
 * A large call goes part by part, and all ranks cut it alike: each part moves the same bytes of every block.
 *
 *     block of rank 0          block of rank 1          block of rank 2
 *     |part 0|part 1|part 2|   |part 0|part 1|part 2|   |part 0|part 1|part 2|
 *
 * A block that is smaller than the largest one takes no part in the last parts.
 *
 *     begin   part 0: pack, start, test ..., unpack   part 1: pack, start, test ..., unpack   ...   end
 *
 * So a rank that stages its buffers needs memory for a part alone. Its bytes have the same places as in a
 * buffer without gaps, because other ranks write there. Hence the memory for the result is as long as the
 * result, but only the pages of the part that runs are there. */
#ifndef MCA_COLL_HIER_RUN_H
#define MCA_COLL_HIER_RUN_H

#include "coll_hier_call.h"
#include "coll_hier_staging.h"

BEGIN_C_DECLS

/* A buffer as the team sees it. */
typedef struct {
    hier_buffer all;
    mca_coll_hier_staging_t staging;
    /* Part by part, by the CPU: one stream for each block, or one for all if there is one part and blocks lie in
     * order. NULL: all is packed before the first part, and unpacked after the last one; or nothing is staged. */
    mca_coll_hier_stream_t* streams;
    size_t stream_count;
    bool is_by_block;
    /* By rank, where blocks begin in `all`; behind them, memory for those of a part. NULL: where they are in a result
     * without gaps. */
    size_t* displacements;
} mca_coll_hier_place_t;

typedef struct {
    const mca_coll_hier_call_t* call;
    size_t part;         /* bytes of each block that a part moves; the last part may move less */
    size_t first, bytes; /* of the part that runs; of smaller blocks it moves less */
    mca_coll_hier_place_t send, receive; /* `send` is not used in place */
    hier_request* request;
    bool is_prepared; /* the next run of this call is one start of `request` */
    int code;         /* of the part that runs: HIER_IN_PROGRESS, ... */
    bool is_over;     /* with this result: */
    int rc;
} mca_coll_hier_run_t;

/* coll_hier_by_team.c */
/* Begins, and starts the first part. Later parts start in mca_coll_hier_move_run. `prepared`: NULL, or a request that an
 * earlier run has prepared; it serves this run if that prepares one, too. */
void mca_coll_hier_start_run(mca_coll_hier_run_t* run, const mca_coll_hier_call_t* call,
                             hier_request* prepared);
/* The same once more, for a run that is prepared and over. */
void mca_coll_hier_start_run_again(mca_coll_hier_run_t* run);
/* Does not wait. True: the run is over. */
bool mca_coll_hier_move_run(mca_coll_hier_run_t* run);
/* Has the last part started, or is the run over? Then the team may be given other calls. */
bool mca_coll_hier_has_started(const mca_coll_hier_run_t* run);

/* coll_hier_run.c */
/* Finds or borrows the memory that the team works on. */
int mca_coll_hier_begin_run(mca_coll_hier_run_t* run);
bool mca_coll_hier_has_parts(const mca_coll_hier_run_t* run);
/* Starts run->request, which has been prepared. */
void mca_coll_hier_start_prepared(mca_coll_hier_run_t* run);
/* Starts the next part. Returns a code of MPI if this rank cannot pack its bytes. Else run->code is what hier_start
 * has returned. */
int mca_coll_hier_start_part(mca_coll_hier_run_t* run);
/* The part has ended well. */
int mca_coll_hier_end_part(mca_coll_hier_run_t* run);
/* `rc`: how the run has ended. After an error the memory stays lent. */
int mca_coll_hier_end_run(mca_coll_hier_run_t* run, int rc);

/* coll_hier_displaced.c */
/* Lets each block go where the application wants it, in run->receive. False: the team cannot. */
bool mca_coll_hier_place_displaced(mca_coll_hier_run_t* run);
/* Where a byte of this rank's block is in run->receive. `offset`: in a result without gaps. */
size_t mca_coll_hier_displaced(const mca_coll_hier_run_t* run, int rank, size_t offset);
/* hier_call.displacements, for a part that moves these bytes of the blocks. */
const size_t* mca_coll_hier_displacements_of_part(const mca_coll_hier_run_t* run,
                                                  const hier_block* blocks);

/* coll_hier_place.c */
int mca_coll_hier_place_receive(mca_coll_hier_run_t* run);
int mca_coll_hier_place_send(mca_coll_hier_run_t* run);
void mca_coll_hier_leave_place(mca_coll_hier_place_t* place, bool has_failed);

END_C_DECLS
#endif
