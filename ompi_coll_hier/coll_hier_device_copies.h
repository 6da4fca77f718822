/* SPDX-License-Identifier: BSD-3-Clause */
/* The copies that pack or unpack elements of a derived datatype in a device's memory.
 *
 * A copy costs some microseconds, however small it is, and a column of an array has a block in each row.
 * So blocks at equal distances become the rows of one copy. There are two ways to join them:
 *
 *   inside an element     blocks of equal length, as a vector has them: one copy for each run of such
 *                         blocks, and for each element
 *   over the elements     the same block of all elements, which are an extent apart: one copy for each
 *                         block
 *
 * The way that takes fewer copies is taken. If each element goes on with the rows of the element before,
 * one copy moves them all. Gaps are not touched. */
#ifndef MCA_COLL_HIER_DEVICE_COPIES_H
#define MCA_COLL_HIER_DEVICE_COPIES_H

#include "coll_hier.h"

BEGIN_C_DECLS

/* One copy: `rows` times `bytes` bytes. Offsets count from the elements' base and from the first packed
 * byte. */
typedef struct {
    ptrdiff_t at;
    size_t packed_at;
    size_t bytes;
    size_t rows;
    size_t pitch, packed_pitch;
} mca_coll_hier_rows_t;

typedef struct mca_coll_hier_row_list_t {
    mca_coll_hier_rows_t* rows;
    size_t used, room;
    /* Makes room for one more, or returns an error. */
    int (*make_room)(struct mca_coll_hier_row_list_t* list);
} mca_coll_hier_row_list_t;

/* Adds the copies for the first `bytes` bytes of the elements. */
int mca_coll_hier_find_copies(const mca_coll_hier_elements_t* elements, size_t bytes,
                              mca_coll_hier_row_list_t* list);

END_C_DECLS
#endif
