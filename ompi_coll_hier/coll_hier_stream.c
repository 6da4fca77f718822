/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_staging.h"

#include <string.h>

#include "ompi/datatype/ompi_datatype.h"

int mca_coll_hier_begin_stream(mca_coll_hier_stream_t* stream,
                               const mca_coll_hier_elements_t* elements, bool is_pack)
{
    const opal_datatype_t* type = &elements->type->super;
    stream->carried_from = stream->carried_to = 0;
    OBJ_CONSTRUCT(&stream->convertor, opal_convertor_t);
    return is_pack ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, type,
                                                              elements->count, elements->base, 0,
                                                              &stream->convertor)
                   : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, type,
                                                              elements->count, elements->base, 0,
                                                              &stream->convertor);
}

void mca_coll_hier_end_stream(mca_coll_hier_stream_t* stream) { OBJ_DESTRUCT(&stream->convertor); }

typedef int32_t (*convert_fn_t)(opal_convertor_t* convertor, struct iovec* iov, uint32_t* out_size,
                                size_t* max_data);

/* Feeds packed bytes through the convertor, until it takes no more. Returns how many, or -1. */
static ptrdiff_t convert(opal_convertor_t* convertor, convert_fn_t step, char* packed, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        struct iovec iov = {.iov_base = packed + done, .iov_len = bytes - done};
        uint32_t vectors = 1;
        size_t moved = bytes - done;
        const int32_t complete = step(convertor, &iov, &vectors, &moved);
        if (0 > complete) {
            return -1;
        }
        done += moved;
        if (1 == complete || 0 == moved) {
            break;
        }
    }
    return (ptrdiff_t)done;
}

static size_t take_carried(mca_coll_hier_stream_t* stream, char* packed, size_t bytes)
{
    const size_t left = stream->carried_to - stream->carried_from;
    const size_t taken = left < bytes ? left : bytes;
    memcpy(packed, stream->carried + stream->carried_from, taken);
    stream->carried_from += taken;
    return taken;
}

int mca_coll_hier_pack_more(mca_coll_hier_stream_t* stream, char* packed, size_t bytes)
{
    size_t done = take_carried(stream, packed, bytes);
    const ptrdiff_t whole =
        convert(&stream->convertor, opal_convertor_pack, packed + done, bytes - done);
    if (0 > whole) {
        return OMPI_ERROR;
    }
    done += (size_t)whole;
    if (done == bytes) {
        return OMPI_SUCCESS;
    }
    const ptrdiff_t more =
        convert(&stream->convertor, opal_convertor_pack, stream->carried, sizeof stream->carried);
    stream->carried_from = 0;
    stream->carried_to = 0 > more ? 0 : (size_t)more;
    done += take_carried(stream, packed + done, bytes - done);
    return done == bytes ? OMPI_SUCCESS : OMPI_ERROR;
}

int mca_coll_hier_unpack_more(mca_coll_hier_stream_t* stream, char* packed, size_t bytes)
{
    const ptrdiff_t done = convert(&stream->convertor, opal_convertor_unpack, packed, bytes);
    return done == (ptrdiff_t)bytes ? OMPI_SUCCESS : OMPI_ERROR;
}
