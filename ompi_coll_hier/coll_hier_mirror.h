/* SPDX-License-Identifier: BSD-3-Clause */
/* Mirrors: memory of the host that takes the place of a buffer in device memory for one call of a module
 * that works by the CPU. Elements lie in the mirror as in the buffer. So the call keeps its counts, displacements
 * and datatypes, and operations find the elements that they expect. */
#ifndef MCA_COLL_HIER_MIRROR_H
#define MCA_COLL_HIER_MIRROR_H

#include "coll_hier_staging.h"

BEGIN_C_DECLS

/* A buffer, as the arguments of MPI describe it. */
typedef struct {
    void* base;
    size_t blocks;
    size_t count;             /* elements of each block */
    const int* counts;        /* the same for each block; NULL: all have `count` */
    const int* displacements; /* of blocks, in extents, or in bytes if there are `types`; NULL: one
                               * block behind the other */
    struct ompi_datatype_t* type;
    struct ompi_datatype_t* const* types; /* of each block; NULL: all have `type` */
} mca_coll_hier_blocks_t;

typedef enum {
    MCA_COLL_HIER_READ = 1,
    MCA_COLL_HIER_WRITTEN = 2,
    MCA_COLL_HIER_BOTH = 3 /* also: perhaps not all of it is written */
} mca_coll_hier_use_t;

typedef struct {
    mca_coll_hier_blocks_t blocks;
    mca_coll_hier_use_t use;
    hier_memory memory;
    mca_coll_hier_staging_t staging;
    ptrdiff_t first; /* of the lowest byte, from blocks.base */
    mca_coll_hier_copies_t** copies;
} mca_coll_hier_mirror_t;

/* Makes a mirror if the CPU cannot reach the buffer, and copies what is read. `*base` is what takes the
 * place of blocks.base. */
int mca_coll_hier_begin_mirror(mca_coll_hier_mirror_t* mirror, void** base);
/* After a call that has ended well: copies back what was written. After any other the memory stays lent. */
int mca_coll_hier_end_mirror(mca_coll_hier_mirror_t* mirror);

END_C_DECLS
#endif
