/* Derived datatypes: packed into, and unpacked from, memory of ours. What a rank stages is its own
 * affair: sizes and pattern stay. */
#include "coll_hier.h"

#include <stdlib.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"

/* Do `count` elements lie in memory as one piece? Then it starts `offset` bytes from the buffer's
 * address. */
bool mca_coll_hier_is_dense(const struct ompi_datatype_t* type, size_t count, ptrdiff_t* offset)
{
    ptrdiff_t true_extent;
    ompi_datatype_get_true_extent(type, offset, &true_extent);
    return ompi_datatype_is_contiguous_memory_layout(type, count > 1 ? 2 : 1);
}

void* mca_coll_hier_reserve(mca_coll_hier_staging_t* staging, size_t bytes)
{
    if (staging->bytes < bytes) {
        mca_coll_hier_release(staging);
        if (0 != posix_memalign(&staging->base, 4096, bytes)) {
            staging->base = NULL;
            return NULL;
        }
        staging->bytes = bytes;
    }
    return staging->base;
}

void mca_coll_hier_release(mca_coll_hier_staging_t* staging)
{
    free(staging->base);
    staging->base = NULL;
    staging->bytes = 0;
}

typedef int32_t (*convert_fn_t)(opal_convertor_t* convertor, struct iovec* iov, uint32_t* out_size,
                                size_t* max_data);

/* Feeds `bytes` packed bytes through the convertor. */
static int convert(opal_convertor_t* convertor, convert_fn_t step, char* packed, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        struct iovec iov = {.iov_base = packed + done, .iov_len = bytes - done};
        uint32_t pieces = 1;
        size_t moved = bytes - done;
        const int32_t complete = step(convertor, &iov, &pieces, &moved);
        done += moved;
        if (0 > complete || (0 == moved && done < bytes)) {
            return OMPI_ERROR;
        }
        if (1 == complete) {
            break;
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_hier_pack(void* packed, size_t bytes, const void* buffer, size_t count,
                       const struct ompi_datatype_t* type)
{
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count,
                                                      buffer, 0, &convertor);
    if (OPAL_SUCCESS == rc) {
        rc = convert(&convertor, opal_convertor_pack, (char*)packed, bytes);
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

int mca_coll_hier_unpack(const void* packed, size_t bytes, void* buffer, size_t count,
                         const struct ompi_datatype_t* type)
{
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
                                                      buffer, 0, &convertor);
    if (OPAL_SUCCESS == rc) {
        rc = convert(&convertor, opal_convertor_unpack, (char*)packed, bytes);
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}
