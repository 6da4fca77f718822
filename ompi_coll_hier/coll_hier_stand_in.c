/* A datatype whose elements lie one upon the other: extent 0. */
#include "coll_hier.h"

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
    *buffer = (mca_coll_hier_buffer_t){is_send ? zeros : scrap, (hier_count_t)(bytes / each), NULL};
    if (OMPI_SUCCESS != ompi_datatype_create_contiguous((int)each, MPI_BYTE, &element)) {
        return;
    }
    if (OMPI_SUCCESS == ompi_datatype_create_resized(element, 0, 0, &buffer->type)) {
        ompi_datatype_commit(&buffer->type);
    } else {
        buffer->type = NULL;
    }
    ompi_datatype_destroy(&element);
}

bool mca_coll_hier_is_stand_in(const mca_coll_hier_buffer_t* buffer)
{
    return zeros == buffer->base || scrap == buffer->base;
}

void mca_coll_hier_drop_stand_in(mca_coll_hier_buffer_t* buffer)
{
    if (mca_coll_hier_is_stand_in(buffer) && NULL != buffer->type) {
        ompi_datatype_destroy(&buffer->type);
    }
}
