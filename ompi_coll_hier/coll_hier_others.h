/* SPDX-License-Identifier: BSD-3-Clause */
/* The other collectives. Where Open MPI knows no GPUs, its modules would read and write device memory by the
 * CPU, and crash. So hier takes these calls. In a blocking call mirrors take the place of such buffers, and
 * the call goes on to the module that hier has taken the place of. Any other call with such a buffer ends
 * with an error. */
#ifndef MCA_COLL_HIER_OTHERS_H
#define MCA_COLL_HIER_OTHERS_H

#include "coll_hier_compat.h"

#include <stdbool.h>

BEGIN_C_DECLS

/* The collectives, by their names in Open MPI's interface. */
#define MCA_COLL_HIER_MIRRORED(ROW)                                                                \
    ROW(allgatherv)                                                                                \
    ROW(allreduce)                                                                                 \
    ROW(alltoall)                                                                                  \
    ROW(alltoallv)                                                                                 \
    ROW(alltoallw)                                                                                 \
    ROW(bcast)                                                                                     \
    ROW(exscan)                                                                                    \
    ROW(gather)                                                                                    \
    ROW(gatherv)                                                                                   \
    ROW(reduce)                                                                                    \
    ROW(reduce_scatter)                                                                            \
    ROW(reduce_scatter_block)                                                                      \
    ROW(scan)                                                                                      \
    ROW(scatter)                                                                                   \
    ROW(scatterv)
#define MCA_COLL_HIER_REFUSED(ROW)                                                                 \
    ROW(iallreduce)                                                                                \
    ROW(ialltoall)                                                                                 \
    ROW(ialltoallv)                                                                                \
    ROW(ialltoallw)                                                                                \
    ROW(ibcast)                                                                                    \
    ROW(iexscan)                                                                                   \
    ROW(igather)                                                                                   \
    ROW(igatherv)                                                                                  \
    ROW(ireduce)                                                                                   \
    ROW(ireduce_scatter)                                                                           \
    ROW(ireduce_scatter_block)                                                                     \
    ROW(iscan)                                                                                     \
    ROW(iscatter)                                                                                  \
    ROW(iscatterv)                                                                                 \
    ROW(allreduce_init)                                                                            \
    ROW(alltoall_init)                                                                             \
    ROW(alltoallv_init)                                                                            \
    ROW(alltoallw_init)                                                                            \
    ROW(bcast_init)                                                                                \
    ROW(exscan_init)                                                                               \
    ROW(gather_init)                                                                               \
    ROW(gatherv_init)                                                                              \
    ROW(reduce_init)                                                                               \
    ROW(reduce_scatter_init)                                                                       \
    ROW(reduce_scatter_block_init)                                                                 \
    ROW(scan_init)                                                                                 \
    ROW(scatter_init)                                                                              \
    ROW(scatterv_init)                                                                             \
    ROW(neighbor_allgather)                                                                        \
    ROW(neighbor_allgatherv)                                                                       \
    ROW(neighbor_alltoall)                                                                         \
    ROW(neighbor_alltoallv)                                                                        \
    ROW(neighbor_alltoallw)                                                                        \
    ROW(ineighbor_allgather)                                                                       \
    ROW(ineighbor_allgatherv)                                                                      \
    ROW(ineighbor_alltoall)                                                                        \
    ROW(ineighbor_alltoallv)                                                                       \
    ROW(ineighbor_alltoallw)                                                                       \
    ROW(neighbor_allgather_init)                                                                   \
    ROW(neighbor_allgatherv_init)                                                                  \
    ROW(neighbor_alltoall_init)                                                                    \
    ROW(neighbor_alltoallv_init)                                                                   \
    ROW(neighbor_alltoallw_init)
#define MCA_COLL_HIER_OTHERS(ROW) MCA_COLL_HIER_MIRRORED(ROW) MCA_COLL_HIER_REFUSED(ROW)

#define MCA_COLL_HIER_ID(name) MCA_COLL_HIER_##name,
enum { MCA_COLL_HIER_OTHERS(MCA_COLL_HIER_ID) MCA_COLL_HIER_OTHER_COUNT };
#undef MCA_COLL_HIER_ID

/* A function of hier, in Open MPI's interface. */
typedef void (*mca_coll_hier_function_t)(void);

/* What served a collective of this communicator before. */
typedef struct {
    mca_coll_hier_function_t function; /* NULL: nobody did, or hier leaves this collective alone */
    mca_coll_base_module_t* module;
    bool is_told; /* that device memory goes through mirrors */
} mca_coll_hier_previous_t;

struct mca_coll_hier_module_t;

/* "MPI_Allreduce"; valid until the next call of this thread. */
const char* mca_coll_hier_name_of_other(int id);
/* coll_hier_mirrored.c: the function that mirrors device memory, by the collective's id; NULL: there is none */
mca_coll_hier_function_t mca_coll_hier_mirrored(int id);
/* coll_hier_refused.c: the function that refuses device memory, by the collective's id */
mca_coll_hier_function_t mca_coll_hier_refusal(int id);

/* Puts hier's functions into the module, for Open MPI to install. */
void mca_coll_hier_offer_others(struct mca_coll_hier_module_t* module);
/* Keeps what serves the communicator now. What nobody serves is withdrawn. */
void mca_coll_hier_keep_others(struct mca_coll_hier_module_t* module,
                               struct ompi_communicator_t* comm);
void mca_coll_hier_drop_others(struct mca_coll_hier_module_t* module);

END_C_DECLS
#endif
