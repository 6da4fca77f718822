/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a team while the application goes on, for calls that must not wait for other ranks.
 *
 * hier_team_create waits for messages of other ranks, so it runs in a thread of its own. Only threads of the
 * application may call Open MPI. So the thread asks, and whoever calls opal_progress() answers:
 *
 *     thread of the set-up                        threads of the application
 *       hier_team_create
 *         exchange: puts the question, sleeps       move: starts a send and a receive
 *                                                   move: both are done: puts the answer, wakes the thread
 *         goes on
 *
 * While it sleeps, it moves the networks now and then: other ranks may wait for an answer. */
#ifndef MCA_COLL_HIER_SETUP_H
#define MCA_COLL_HIER_SETUP_H

#include "coll_hier.h"

BEGIN_C_DECLS

/* What hier_team_create is given. */
typedef struct {
    hier_config config;
    hier_bootstrap bootstrap;
    char name[MPI_MAX_OBJECT_NAME + 64];
} mca_coll_hier_plan_t;

/* coll_hier_team.c */
/* `exchange` and `is_present` are left open. */
void mca_coll_hier_plan_team(struct ompi_communicator_t* comm, mca_coll_hier_plan_t* plan);

/* coll_hier_setup.c */
/* NULL: there is no memory or no thread. */
mca_coll_hier_setup_t* mca_coll_hier_begin_setup(struct ompi_communicator_t* comm);
/* Answers the thread. Does not wait. True: the set-up is over, and `setup` is gone. `*code` and `*team` are
 * what hier_team_create has returned. One thread at a time. */
bool mca_coll_hier_move_setup(mca_coll_hier_setup_t* setup, int* code, hier_team** team);
/* Ends the set-up with an error. Other ranks may still be in it. NULL: nothing happens. */
void mca_coll_hier_break_off_setup(mca_coll_hier_setup_t* setup);

END_C_DECLS
#endif
