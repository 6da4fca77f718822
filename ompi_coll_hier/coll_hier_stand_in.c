/* What the previous module is given in place of the application's buffers: memory of ours, or, where there is
 * none, a datatype whose elements lie one upon the other: extent 0. */
#include "coll_hier.h"

#include <limits.h>

#include "ompi/datatype/ompi_datatype.h"

static char zeros[4096];
static char scrap[sizeof zeros];

/* Elements as large as fit and divide the whole: a copy of each costs the same. */
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

void mca_coll_hier_make_stand_in(size_t bytes, bool is_send, mca_coll_hier_buffer_t* buffer)
{
    const size_t each = element_bytes(bytes);
    struct ompi_datatype_t* element = NULL;
    *buffer = (mca_coll_hier_buffer_t){is_send ? zeros : scrap, (hier_count_t)(bytes / each), NULL,
                                       false};
    if (OMPI_SUCCESS != ompi_datatype_create_contiguous((int)each, MPI_BYTE, &element)) {
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

/* Of so many bytes, more than a count may be. */
static bool make_element(size_t bytes, struct ompi_datatype_t** type)
{
    enum { gib = 1 << 30 };
    struct ompi_datatype_t* large = NULL;
    *type = NULL;
    if (bytes <= INT_MAX) {
        (void)ompi_datatype_create_contiguous((int)bytes, MPI_BYTE, type);
    } else if (OMPI_SUCCESS == ompi_datatype_create_contiguous(gib, MPI_BYTE, &large)) {
        const int counts[2] = {(int)(bytes / gib), (int)(bytes % gib)};
        const ptrdiff_t places[2] = {0, (ptrdiff_t)(bytes / gib * gib)};
        struct ompi_datatype_t* const parts[2] = {large, MPI_BYTE};
        (void)ompi_datatype_create_struct(2, counts, places, parts, type);
        ompi_datatype_destroy(&large);
    }
    if (NULL != *type) {
        ompi_datatype_commit(type);
    }
    return NULL != *type;
}

/* As bytes, where their number is a count. */
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

bool mca_coll_hier_is_stand_in(const mca_coll_hier_buffer_t* buffer)
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
