/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of MPI_Allgather_init, which MPI_Start starts again and again.
 *
 * An application may start them in any order, and in another one on each rank. So each has a team of its own, which
 * MPI_Allgather_init makes. */
#ifndef MCA_COLL_HIER_PERSISTENT_H
#define MCA_COLL_HIER_PERSISTENT_H

#include "coll_hier_request.h"

BEGIN_C_DECLS

/* With the component. */
void mca_coll_hier_open_persistent(void);
void mca_coll_hier_close_persistent(void);
/* As mca_coll_hier_start_once, for a call that MPI_Start starts. Waits for the other ranks. */
int mca_coll_hier_make_persistent(mca_coll_hier_request_t* request, ompi_request_t** handle);

END_C_DECLS
#endif
