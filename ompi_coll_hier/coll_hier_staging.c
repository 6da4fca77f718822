/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_staging.h"

#include "ompi/datatype/ompi_datatype.h"

bool mca_coll_hier_is_dense(const struct ompi_datatype_t* type, size_t count, ptrdiff_t* offset)
{
    ptrdiff_t true_extent;
    ompi_datatype_get_true_extent(type, offset, &true_extent);
    return ompi_datatype_is_contiguous_memory_layout(type, count > 1 ? 2 : 1);
}

int mca_coll_hier_borrow(mca_coll_hier_staging_t* staging, int kind, size_t bytes)
{
    staging->is_on_device = false;
    staging->base = (char*)hier_staging_borrow(kind, bytes);
    return NULL == staging->base ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

bool mca_coll_hier_borrow_on_device(mca_coll_hier_staging_t* staging, size_t bytes,
                                    const mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    staging->is_on_device = true;
    staging->base = (char*)hier_memory_borrow(mca_coll_hier_at(elements->base, offset), bytes);
    return NULL != staging->base;
}

void mca_coll_hier_give_back(mca_coll_hier_staging_t* staging)
{
    if (NULL == staging->base) { /* most calls stage nothing */
        return;
    }
    if (staging->is_on_device) {
        hier_memory_give_back(staging->base);
    } else {
        hier_staging_give_back(staging->base);
    }
    staging->base = NULL;
}

static int convert(char* packed, size_t bytes, const mca_coll_hier_elements_t* elements,
                   bool is_pack)
{
    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (!elements->memory.is_reachable) {
        return mca_coll_hier_convert_on_device(packed, bytes, elements, is_pack);
    }
    mca_coll_hier_stream_t stream;
    int rc = mca_coll_hier_begin_stream(&stream, elements, is_pack);
    if (OMPI_SUCCESS == rc) {
        rc = is_pack ? mca_coll_hier_pack_more(&stream, packed, bytes)
                     : mca_coll_hier_unpack_more(&stream, packed, bytes);
    }
    mca_coll_hier_end_stream(&stream);
    return rc;
}

int mca_coll_hier_pack(char* packed, size_t bytes, const mca_coll_hier_elements_t* from)
{
    return convert(packed, bytes, from, true);
}

int mca_coll_hier_unpack(char* packed, size_t bytes, const mca_coll_hier_elements_t* to)
{
    return convert(packed, bytes, to, false);
}
