/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_mirror.h"

#include "ompi/datatype/ompi_datatype.h"

/* One block of a buffer. */
typedef struct {
    ptrdiff_t at; /* of the first element, from the buffer's base */
    size_t count, bytes;
    struct ompi_datatype_t* type;
} block_t;

static block_t block_of(const mca_coll_hier_blocks_t* blocks, size_t i)
{
    block_t block = {.count = NULL == blocks->counts ? blocks->count : (size_t)blocks->counts[i],
                     .type = NULL == blocks->types ? blocks->type : blocks->types[i]};
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_extent(block.type, &lower_bound, &extent);
    ompi_datatype_type_size(block.type, &block.bytes);
    block.bytes *= block.count;
    if (NULL == blocks->displacements) {
        block.at = (ptrdiff_t)(i * blocks->count) * extent;
    } else {
        block.at = blocks->displacements[i] * (NULL == blocks->types ? extent : 1);
    }
    return block;
}

/* The bytes from the lowest to the highest one of all blocks. 0: there are no bytes. */
static size_t span_of(const mca_coll_hier_blocks_t* blocks, ptrdiff_t* first, ptrdiff_t* any)
{
    ptrdiff_t lowest = PTRDIFF_MAX, end = PTRDIFF_MIN;
    for (size_t i = 0; i < blocks->blocks; i++) {
        const block_t block = block_of(blocks, i);
        if (0 == block.bytes) {
            continue;
        }
        ptrdiff_t lower_bound, extent, true_lower_bound, true_extent;
        ompi_datatype_get_extent(block.type, &lower_bound, &extent);
        ompi_datatype_get_true_extent(block.type, &true_lower_bound, &true_extent);
        /* The extent of a datatype may be negative. */
        const ptrdiff_t last = extent * (ptrdiff_t)(block.count - 1);
        const ptrdiff_t from = block.at + true_lower_bound + (0 > last ? last : 0);
        const ptrdiff_t to = block.at + true_lower_bound + true_extent + (0 > last ? 0 : last);
        *any = block.at + true_lower_bound;
        lowest = from < lowest ? from : lowest;
        end = to > end ? to : end;
    }
    *first = lowest;
    return end > lowest ? (size_t)(end - lowest) : 0;
}

static mca_coll_hier_elements_t elements_of(const mca_coll_hier_mirror_t* mirror, void* base,
                                            const block_t* block, hier_memory memory)
{
    return (mca_coll_hier_elements_t){mca_coll_hier_at(base, block->at), block->count, block->type,
                                      memory, mirror->copies};
}

static void* base_of(const mca_coll_hier_mirror_t* mirror)
{
    return mca_coll_hier_at(mirror->staging.base, -mirror->first);
}

/* Bytes between the elements belong to the application, and other threads may write them meanwhile. So
 * elements with gaps are packed on their way. */
static int copy_with_gaps(const mca_coll_hier_elements_t* from, const mca_coll_hier_elements_t* to,
                          size_t bytes)
{
    mca_coll_hier_staging_t packed;
    int rc = mca_coll_hier_borrow(&packed, HIER_STAGING_PINNED, bytes);
    rc = OMPI_SUCCESS == rc ? mca_coll_hier_pack(packed.base, bytes, from) : rc;
    rc = OMPI_SUCCESS == rc ? mca_coll_hier_unpack(packed.base, bytes, to) : rc;
    if (OMPI_SUCCESS == rc) {
        mca_coll_hier_give_back(&packed);
    }
    return rc;
}

static int copy(mca_coll_hier_mirror_t* mirror, bool is_to_host)
{
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < mirror->blocks.blocks && OMPI_SUCCESS == rc; i++) {
        const block_t block = block_of(&mirror->blocks, i);
        if (0 == block.bytes) {
            continue;
        }
        const mca_coll_hier_elements_t device =
            elements_of(mirror, mirror->blocks.base, &block, mirror->memory);
        const mca_coll_hier_elements_t host =
            elements_of(mirror, base_of(mirror), &block, (hier_memory){.is_reachable = 1});
        ptrdiff_t offset;
        if (mca_coll_hier_is_dense(block.type, block.count, &offset)) {
            char* const at = (char*)mca_coll_hier_at(host.base, offset);
            rc = is_to_host ? mca_coll_hier_pack(at, block.bytes, &device)
                            : mca_coll_hier_unpack(at, block.bytes, &device);
        } else {
            rc = is_to_host ? copy_with_gaps(&device, &host, block.bytes)
                            : copy_with_gaps(&host, &device, block.bytes);
        }
    }
    return rc;
}

int mca_coll_hier_begin_mirror(mca_coll_hier_mirror_t* mirror, void** base)
{
    ptrdiff_t any = 0;
    const size_t span = span_of(&mirror->blocks, &mirror->first, &any);
    mirror->staging.base = NULL;
    *base = mirror->blocks.base;
    if (0 == span) {
        return OMPI_SUCCESS;
    }
    const void* const address = mca_coll_hier_at(mirror->blocks.base, any);
    hier_memory* const memory = &mirror->memory;
    hier_memory_inspect(1, &address, &memory);
    if (memory->is_reachable) {
        return OMPI_SUCCESS;
    }
    if (HIER_OK != memory->error) {
        return mca_coll_hier_to_mpi_error(memory->error);
    }
    const int rc = mca_coll_hier_borrow(&mirror->staging, HIER_STAGING_PINNED, span);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    *base = base_of(mirror);
    return MCA_COLL_HIER_READ & mirror->use ? copy(mirror, true) : OMPI_SUCCESS;
}

int mca_coll_hier_end_mirror(mca_coll_hier_mirror_t* mirror)
{
    if (NULL == mirror->staging.base) {
        return OMPI_SUCCESS;
    }
    const int rc = MCA_COLL_HIER_WRITTEN & mirror->use ? copy(mirror, false) : OMPI_SUCCESS;
    if (OMPI_SUCCESS == rc) {
        mca_coll_hier_give_back(&mirror->staging);
    }
    return rc;
}
