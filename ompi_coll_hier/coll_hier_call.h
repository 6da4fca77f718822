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
    /* Calls the fallback module's function. */
    int (*fallback)(const mca_coll_hier_call_t* call, const mca_coll_hier_buffer_t* send,
                    const mca_coll_hier_buffer_t* receive);
} mca_coll_hier_collective_t;

struct mca_coll_hier_call_t {
    const mca_coll_hier_collective_t* collective;
    mca_coll_hier_module_t* module;
    struct ompi_communicator_t* comm;
    bool in_place;
    mca_coll_hier_elements_t send;    /* unless in place */
    mca_coll_hier_elements_t receive; /* of all ranks */
    mca_coll_hier_elements_t own;     /* the part of `receive` that is this rank's */
    size_t shard_bytes;
    size_t total;
};

size_t mca_coll_hier_bytes_of(const mca_coll_hier_elements_t* elements);
/* The error of a rank that passes another number of bytes than the other ranks. */
int mca_coll_hier_size_mismatch(const mca_coll_hier_call_t* call);
/* Packs the own shard. The other ranks must get their result. So missing bytes are replaced by zeros, in
 * memory of the host only, and surplus bytes are cut off. */
int mca_coll_hier_pack_send(const mca_coll_hier_call_t* call, char* packed);
/* In place: packs the own shard into its place in the packed result. */
int mca_coll_hier_pack_own(const mca_coll_hier_call_t* call, char* result);

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
mca_coll_hier_server_t mca_coll_hier_choose(const mca_coll_hier_call_t* call);

/* coll_hier_by_team.c */
int mca_coll_hier_by_team(const mca_coll_hier_call_t* call);

/* coll_hier_fallback.c: `send` and `receive` are as the application gave them */
int mca_coll_hier_by_fallback(const mca_coll_hier_call_t* call, mca_coll_hier_buffer_t send,
                              mca_coll_hier_buffer_t receive);

END_C_DECLS
#endif
