/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: a buffer with gaps, or one that the CPU cannot reach, goes through memory of ours, packed. Each
 * rank decides for itself what it stages: sizes and pattern of communication stay. */
#ifndef MCA_COLL_HIER_STAGING_H
#define MCA_COLL_HIER_STAGING_H

#include "coll_hier.h"

#include "opal/datatype/opal_convertor.h"

BEGIN_C_DECLS

/* Memory that stands in for a buffer of the application for one call. The process lends it. */
typedef struct {
    char* base; /* NULL: none */
    bool is_on_device;
} mca_coll_hier_staging_t;

/* coll_hier_staging.c */
/* Do `count` elements lie in memory without gaps? Then they start `offset` bytes from the buffer's address. */
bool mca_coll_hier_is_dense(const struct ompi_datatype_t* type, size_t count, ptrdiff_t* offset);
/* Borrows memory of the host. `kind`: HIER_STAGING_*. */
int mca_coll_hier_borrow(mca_coll_hier_staging_t* staging, int kind, size_t bytes);
/* Borrows memory of the elements' device. False: there is none. */
bool mca_coll_hier_borrow_on_device(mca_coll_hier_staging_t* staging, size_t bytes,
                                    const mca_coll_hier_elements_t* elements);
/* After a call that has ended well. After an error peers, the network or a device may still read and write
 * the memory: then it stays lent until the component closes. */
void mca_coll_hier_give_back(mca_coll_hier_staging_t* staging);
/* Copies the first `bytes` bytes of the elements, packed, to or from memory without gaps. */
int mca_coll_hier_pack(char* packed, size_t bytes, const mca_coll_hier_elements_t* from);
int mca_coll_hier_unpack(char* packed, size_t bytes, const mca_coll_hier_elements_t* to);

/* coll_hier_stream.c: elements that the CPU reaches. Their packed bytes are taken, or given, in order and in
 * parts of any size. */
enum { MCA_COLL_HIER_MAX_CARRIED = 64 };
typedef struct {
    opal_convertor_t convertor;
    /* Open MPI packs whole numbers only, and a number may lie half in this part and half in the next one.
     * These bytes have been packed, but not been taken. */
    char carried[MCA_COLL_HIER_MAX_CARRIED];
    size_t carried_from, carried_to;
} mca_coll_hier_stream_t;

int mca_coll_hier_begin_stream(mca_coll_hier_stream_t* stream,
                               const mca_coll_hier_elements_t* elements, bool is_pack);
int mca_coll_hier_pack_more(mca_coll_hier_stream_t* stream, char* packed, size_t bytes);
int mca_coll_hier_unpack_more(mca_coll_hier_stream_t* stream, char* packed, size_t bytes);
void mca_coll_hier_end_stream(mca_coll_hier_stream_t* stream);

END_C_DECLS
#endif
