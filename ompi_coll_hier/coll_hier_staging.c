/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: derived datatypes are packed into memory without gaps and unpacked from it. Device memory goes
 * through memory of the host, for modules that know no other. Each rank decides for itself what it
 * stages: sizes and pattern of communication stay. */
#include "coll_hier.h"

#include <stdlib.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"

bool mca_coll_hier_is_dense(const struct ompi_datatype_t* type, size_t count, ptrdiff_t* offset)
{
    ptrdiff_t true_extent;
    ompi_datatype_get_true_extent(type, offset, &true_extent);
    return ompi_datatype_is_contiguous_memory_layout(type, count > 1 ? 2 : 1);
}

void* mca_coll_hier_reserve(mca_coll_hier_staging_t* staging, size_t bytes, bool for_device)
{
    const bool is_lent = NULL != staging->base && NULL == staging->host;
    if (!is_lent) {
        staging->base = hier_host_memory_reserve(&staging->host, bytes, for_device);
    }
    return staging->base;
}

bool mca_coll_hier_borrow(mca_coll_hier_staging_t* staging, size_t bytes,
                          const mca_coll_hier_elements_t* elements)
{
    ptrdiff_t offset, true_extent;
    ompi_datatype_get_true_extent(elements->type, &offset, &true_extent);
    staging->base = hier_memory_borrow(mca_coll_hier_at(elements->base, offset), bytes);
    return NULL != staging->base;
}

void mca_coll_hier_release(mca_coll_hier_staging_t* staging)
{
    if (NULL != staging->host) {
        hier_host_memory_free(staging->host);
    } else if (NULL != staging->base) { /* most calls stage nothing */
        hier_memory_give_back(staging->base);
    }
    *staging = (mca_coll_hier_staging_t){NULL, NULL};
}

typedef struct kept {
    struct kept* next;
    mca_coll_hier_staging_t staging;
} kept_t;

static kept_t* all_abandoned;

void mca_coll_hier_abandon(mca_coll_hier_staging_t* staging)
{
    kept_t* kept = (kept_t*)malloc(sizeof(*kept));
    if (NULL != kept) {
        kept->staging = *staging;
        kept->next = __atomic_load_n(&all_abandoned, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&all_abandoned, &kept->next, kept, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        }
    }
    *staging = (mca_coll_hier_staging_t){NULL, NULL};
}

void mca_coll_hier_release_abandoned(void)
{
    while (NULL != all_abandoned) {
        kept_t* first = all_abandoned;
        all_abandoned = first->next;
        mca_coll_hier_release(&first->staging);
        free(first);
    }
}

typedef int32_t (*convert_fn_t)(opal_convertor_t* convertor, struct iovec* iov, uint32_t* out_size,
                                size_t* max_data);

/* Feeds `bytes` packed bytes through the convertor. */
static int convert(opal_convertor_t* convertor, convert_fn_t step, char* packed, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        struct iovec iov = {.iov_base = packed + done, .iov_len = bytes - done};
        uint32_t vectors = 1;
        size_t moved = bytes - done;
        const int32_t complete = step(convertor, &iov, &vectors, &moved);
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

static int convert_elements(char* packed, size_t bytes, const mca_coll_hier_elements_t* elements,
                            bool is_pack)
{
    if (!elements->memory.is_reachable) {
        return mca_coll_hier_convert_on_device(packed, bytes, elements, is_pack);
    }
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int rc = is_pack
                 ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor,
                                                            &elements->type->super, elements->count,
                                                            elements->base, 0, &convertor)
                 : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor,
                                                            &elements->type->super, elements->count,
                                                            elements->base, 0, &convertor);
    if (OPAL_SUCCESS == rc) {
        rc = convert(&convertor, is_pack ? opal_convertor_pack : opal_convertor_unpack, packed,
                     bytes);
    }
    OBJ_DESTRUCT(&convertor);
    return rc;
}

/* After an error a copy may still read or write the memory. */
static int keep_from_copies(int rc, mca_coll_hier_staging_t* staging)
{
    if (OMPI_SUCCESS != rc) {
        mca_coll_hier_abandon(staging);
    }
    return rc;
}

int mca_coll_hier_pack(mca_coll_hier_staging_t* staging, size_t at, size_t bytes,
                       const mca_coll_hier_elements_t* from)
{
    return 0 == bytes
               ? OMPI_SUCCESS
               : keep_from_copies(convert_elements((char*)staging->base + at, bytes, from, true),
                                  staging);
}

int mca_coll_hier_unpack(mca_coll_hier_staging_t* staging, size_t bytes,
                         const mca_coll_hier_elements_t* to)
{
    return 0 == bytes ? OMPI_SUCCESS
                      : keep_from_copies(convert_elements((char*)staging->base, bytes, to, false),
                                         staging);
}
