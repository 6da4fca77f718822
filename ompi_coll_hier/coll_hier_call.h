/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective call on its way to the team or to the fallback module. */
#ifndef MCA_COLL_HIER_CALL_H
#define MCA_COLL_HIER_CALL_H

#include "coll_hier.h"

BEGIN_C_DECLS

typedef struct mca_coll_hier_call_t mca_coll_hier_call_t;

/* What differs between collectives. Each one has its own in coll_hier_<name>.c. */
typedef struct {
    int id;           /* HIER_ALLGATHER, ...; also an index */
    const char* name; /* of the MPI function */
    /* Calls the fallback module's function, for mca_coll_hier_by_fallback. */
    int (*fallback)(const mca_coll_hier_call_t* call, const mca_coll_hier_buffer_t* send,
                    const mca_coll_hier_buffer_t* receive);
    mca_coll_hier_counted_t counted;
} mca_coll_hier_collective_t;

/* A rank's block of the result. */
typedef struct {
    mca_coll_hier_elements_t elements;
    hier_block packed; /* in a result without gaps */
} mca_coll_hier_block_t;

struct mca_coll_hier_call_t {
    const mca_coll_hier_collective_t* collective;
    mca_coll_hier_module_t* module;
    struct ompi_communicator_t* comm;
    hier_team* team; /* that serves the call */
    bool in_place;
    bool in_background;                   /* the application may do something else meanwhile */
    bool is_repeated;                     /* may come again: what it finds out is kept */
    mca_coll_hier_elements_t send;        /* unless in place */
    mca_coll_hier_elements_t receive;     /* of all ranks; `base` is that of the first element */
    mca_coll_hier_elements_t own;         /* the part of `receive` that is this rank's */
    const mca_coll_hier_shards_t* shards; /* NULL: all blocks have the same size and lie in order */
    size_t shard_bytes;                   /* of this rank's block */
    size_t largest;                       /* the largest block; equal on all ranks */
    size_t total;
    /* NULL, or hier_call.on_success for a call that leaves nothing else to do. */
    void (*on_success)(void* context);
    void* context;
};

/* Fills in what both allgathers have: all but the receive counts and what follows from them. */
void mca_coll_hier_describe(mca_coll_hier_call_t* call, const void* sbuf, size_t scount,
                            struct ompi_datatype_t* sdtype, void* rbuf,
                            struct ompi_datatype_t* rdtype, struct ompi_communicator_t* comm,
                            mca_coll_base_module_t* module);
/* Finds out where the buffers are, and fills in `own`. Until then all memory passes for the host's. */
void mca_coll_hier_find_memory(mca_coll_hier_call_t* call);
/* They count calls of more than one rank. Threads may count on several communicators at once. */
static inline void mca_coll_hier_count_served(const mca_coll_hier_call_t* call)
{
    if (1 < ompi_comm_size(call->comm)) {
        __atomic_fetch_add(&call->module->counts->calls[call->collective->counted], 1,
                           __ATOMIC_RELAXED);
    }
}
static inline void mca_coll_hier_count_fallback(const mca_coll_hier_call_t* call)
{
    if (1 < ompi_comm_size(call->comm)) {
        mca_coll_hier_counts_t* counts = call->module->counts;
        __atomic_fetch_add(&counts->fallbacks[call->collective->counted], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counts->fallback_bytes, call->total, __ATOMIC_RELAXED);
    }
}
mca_coll_hier_block_t mca_coll_hier_block_of(const mca_coll_hier_call_t* call, int rank);

/* `now` has been found later, at the address of `before`. Is it still the same allocation? */
bool mca_coll_hier_is_same_memory(const hier_memory* before, const hier_memory* now);
/* Is none of the buffers anything but ordinary memory of the host? */
static inline bool mca_coll_hier_is_on_host(const mca_coll_hier_call_t* call)
{
    return HIER_MEMORY_HOST == call->receive.memory.kind &&
           HIER_MEMORY_HOST == call->send.memory.kind;
}
bool mca_coll_hier_has_predefined_types(const mca_coll_hier_call_t* call);
size_t mca_coll_hier_bytes_of(const mca_coll_hier_elements_t* elements);
/* The error of a rank that passes another number of bytes than the other ranks. */
int mca_coll_hier_size_mismatch(const mca_coll_hier_call_t* call);
/* Packs the own shard. The other ranks must get their result. So missing bytes are replaced by zeros, in
 * memory of the host only, and surplus bytes are cut off. */
int mca_coll_hier_pack_send(const mca_coll_hier_call_t* call, char* packed);
/* In place: packs the own shard into its place in the packed result. */
int mca_coll_hier_pack_own(const mca_coll_hier_call_t* call, char* result);
int mca_coll_hier_unpack_result(const mca_coll_hier_call_t* call, char* result);

/* coll_hier_allgatherv.c */
/* Allocates memory for the copy unless `to` has it. False: there is none. */
bool mca_coll_hier_copy_blocks(const mca_coll_hier_shards_t* from, mca_coll_hier_shards_t* to,
                               size_t size);
/* Are the counts and places of all blocks the same? Where both calls have equal blocks in order, their receive buffers
 * say it all. */
bool mca_coll_hier_have_same_blocks(const mca_coll_hier_call_t* a, const mca_coll_hier_call_t* b);

/* coll_hier_failures.c: processes that end while the others live on */
/* Ends the team's running call on all ranks, if Open MPI knows that the call cannot end well. Open MPI may
 * learn of a death at any time, so this is asked in every pass. */
void mca_coll_hier_end_if_broken(const mca_coll_hier_call_t* call);
/* MPI's error code for a call that has ended with this code of the core. */
int mca_coll_hier_error_of_call(const mca_coll_hier_call_t* call, int code);

/* coll_hier_choice.c: decides who serves the call. All ranks decide alike. The first call that is worth a
 * team makes it. */
typedef enum {
    MCA_COLL_HIER_BY_TEAM,
    MCA_COLL_HIER_BY_FALLBACK,
    MCA_COLL_HIER_BY_NOBODY /* set-up broke off, and its messages may still come */
} mca_coll_hier_server_t;
/* For a call that returns before it has run. The first one begins the set-up of a team: by the team then means that the
 * team serves the call if there will be one. */
mca_coll_hier_server_t mca_coll_hier_choose_started(const mca_coll_hier_call_t* call);
/* Chooses, counts, and lets the team serve the call, whose buffers it finds: then `*rc` is the call's result. False:
 * the fallback module has to serve it. */
bool mca_coll_hier_serve(mca_coll_hier_call_t* call, int* rc);

/* coll_hier_by_team.c */
int mca_coll_hier_by_team(mca_coll_hier_call_t* call);
/* The quick way, for MPI_Allgather: if the call that the communicator keeps (coll_hier_last.h) has the same arguments,
 * the team serves it once more, and `*rc` is its result. False: nothing has happened. `receive`: what comes from each
 * rank. */
bool mca_coll_hier_serve_again(mca_coll_hier_module_t* module,
                               const mca_coll_hier_collective_t* collective,
                               const mca_coll_hier_buffer_t* send,
                               const mca_coll_hier_buffer_t* receive, int* rc);

/* coll_hier_fallback.c: `send` and `receive` are as the application gave them */
int mca_coll_hier_by_fallback(const mca_coll_hier_call_t* call, mca_coll_hier_buffer_t send,
                              mca_coll_hier_buffer_t receive);
/* The other ranks would wait for this one. */
int mca_coll_hier_lacks_memory(struct ompi_communicator_t* comm);
/* This rank cannot take part in a call that no team serves. */
int mca_coll_hier_end_job(const mca_coll_hier_call_t* call, int error);

END_C_DECLS
#endif
