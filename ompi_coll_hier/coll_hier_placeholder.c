/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that the fallback module gets in place of the application's. They lie in staging memory. If there
 * is none, a datatype of extent 0 puts all elements one upon the other. */
#include "coll_hier.h"

#include <limits.h>

#include "ompi/datatype/ompi_datatype.h"

static char zeros[4096];
static char scrap[sizeof zeros];

/* The largest element that fits and divides the whole. Small and large elements cost the same to copy. */
static size_t element_bytes(size_t bytes)
{
    size_t a = bytes;
    size_t b = sizeof zeros;
    while (0 != b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void mca_coll_hier_make_placeholder(size_t bytes, bool is_send, mca_coll_hier_buffer_t* buffer)
{
    const size_t each = element_bytes(bytes);
    struct ompi_datatype_t* element = NULL;
    *buffer = (mca_coll_hier_buffer_t){is_send ? zeros : scrap, (hier_count_t)(bytes / each), NULL,
                                       false};
    if (OMPI_SUCCESS != ompi_datatype_create_contiguous((hier_count_t)each, MPI_BYTE, &element)) {
        return;
    }
    if (OMPI_SUCCESS == ompi_datatype_create_resized(element, 0, 0, &buffer->type)) {
        ompi_datatype_commit(&buffer->type);
        buffer->owns_type = true;
    } else {
        buffer->type = NULL;
    }
    ompi_datatype_destroy(&element);
}

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

bool mca_coll_hier_is_placeholder(const mca_coll_hier_buffer_t* buffer)
{
    return zeros == buffer->base || scrap == buffer->base;
}

void mca_coll_hier_drop_type(mca_coll_hier_buffer_t* buffer)
{
    if (buffer->owns_type) {
        ompi_datatype_destroy(&buffer->type);
    }
    buffer->owns_type = false;
}
