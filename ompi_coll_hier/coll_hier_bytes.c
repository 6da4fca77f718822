/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes for plain bytes, which may be more than a count can say. */
#include "coll_hier.h"

#include <limits.h>

#include "ompi/datatype/ompi_datatype.h"

static bool add(struct ompi_datatype_t* type, struct ompi_datatype_t* part, size_t count, size_t at,
                size_t each)
{
    return OMPI_SUCCESS == ompi_datatype_add(type, part, count, (ptrdiff_t)at, (ptrdiff_t)each);
}

/* A type of so many bytes, which may be more than a count can say. */
static bool make_element(size_t bytes, struct ompi_datatype_t** type)
{
    const size_t gib = (size_t)1 << 30;
    const size_t whole = bytes / gib * gib;
    struct ompi_datatype_t* large = NULL;
    *type = NULL;
    if (OMPI_SUCCESS != ompi_datatype_create_contiguous((hier_count_t)gib, MPI_BYTE, &large)) {
        return false;
    }
    *type = ompi_datatype_create(2);
    if (NULL != *type) {
        if ((whole == 0 || add(*type, large, whole / gib, 0, gib)) &&
            (whole == bytes || add(*type, MPI_BYTE, bytes - whole, whole, 1))) {
            ompi_datatype_commit(type);
        } else {
            ompi_datatype_destroy(type);
            *type = NULL;
        }
    }
    ompi_datatype_destroy(&large);
    return NULL != *type;
}

void mca_coll_hier_describe_bytes(size_t count, size_t each, mca_coll_hier_buffer_t* buffer)
{
    buffer->count = (hier_count_t)(count * each);
    buffer->type = MPI_BYTE;
    if (count * each <= INT_MAX) {
        return;
    }
    buffer->count = (hier_count_t)count;
    buffer->owns_type = make_element(each, &buffer->type);
}

void mca_coll_hier_drop_type(mca_coll_hier_buffer_t* buffer)
{
    if (buffer->owns_type) {
        ompi_datatype_destroy(&buffer->type);
    }
    buffer->owns_type = false;
}
