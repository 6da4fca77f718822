/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_hier_device_copies.h"

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Blocks of one element that have equal lengths and distances. Packed, they lie one behind the other. */
typedef struct {
    ptrdiff_t at; /* of the first block, in the first element */
    size_t packed_at;
    size_t bytes; /* of a block */
    size_t rows;  /* blocks */
    ptrdiff_t pitch;
} run_t;

/* Equal elements, whose copies are looked for. */
typedef struct {
    ptrdiff_t at;
    size_t packed_at;
    size_t count;
    ptrdiff_t extent;
    size_t packed_extent;
    const mca_coll_hier_elements_t* elements;
    mca_coll_hier_row_list_t* list;
} search_t;

static int add_copy(search_t* search, ptrdiff_t at, size_t packed_at, size_t bytes, size_t rows,
                    size_t pitch, size_t packed_pitch)
{
    mca_coll_hier_row_list_t* list = search->list;
    const int rc = list->used == list->room ? list->make_room(list) : OMPI_SUCCESS;
    if (OMPI_SUCCESS == rc) {
        list->rows[list->used++] = (mca_coll_hier_rows_t){
            search->at + at, search->packed_at + packed_at, bytes, rows, pitch, packed_pitch};
    }
    return rc;
}

/* Drivers take many plain copies at a time. So a few rows go as plain copies. */
static int add_rows(search_t* search, ptrdiff_t at, size_t packed_at, size_t bytes, size_t rows,
                    ptrdiff_t pitch, size_t packed_pitch)
{
    enum { min_rows = 8 };
    /* Elements may lie one upon the other, or backwards. */
    if (rows >= min_rows && pitch >= (ptrdiff_t)bytes) {
        return add_copy(search, at, packed_at, bytes, rows, (size_t)pitch, packed_pitch);
    }
    int rc = OMPI_SUCCESS;
    for (size_t row = 0; row < rows && OMPI_SUCCESS == rc; row++) {
        rc = add_copy(search, at + (ptrdiff_t)row * pitch, packed_at + row * packed_pitch, bytes, 1,
                      0, 0);
    }
    return rc;
}

static int inside_elements(search_t* search, const run_t* run)
{
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < search->count && OMPI_SUCCESS == rc; i++) {
        rc = add_rows(search, run->at + (ptrdiff_t)i * search->extent,
                      run->packed_at + i * search->packed_extent, run->bytes, run->rows, run->pitch,
                      run->bytes);
    }
    return rc;
}

static int over_elements(search_t* search, const run_t* run)
{
    int rc = OMPI_SUCCESS;
    for (size_t row = 0; row < run->rows && OMPI_SUCCESS == rc; row++) {
        rc = add_rows(search, run->at + (ptrdiff_t)row * run->pitch,
                      run->packed_at + row * run->bytes, run->bytes, search->count, search->extent,
                      search->packed_extent);
    }
    return rc;
}

static int add_run(search_t* search, const run_t* run)
{
    const bool is_whole = run->bytes * run->rows == search->packed_extent;
    if (is_whole && search->extent == (ptrdiff_t)run->rows * run->pitch) {
        /* The next element goes on with the run. */
        return add_rows(search, run->at, run->packed_at, run->bytes, run->rows * search->count,
                        run->pitch, run->bytes);
    }
    return run->rows < search->count ? over_elements(search, run) : inside_elements(search, run);
}

/* Takes the next block into the run, if the block goes on with it. */
static bool extend(run_t* run, ptrdiff_t at, size_t bytes)
{
    const ptrdiff_t pitch = 1 == run->rows ? at - run->at : run->pitch;
    if (bytes != run->bytes || pitch < (ptrdiff_t)bytes ||
        at != run->at + (ptrdiff_t)run->rows * pitch) {
        return false;
    }
    run->pitch = pitch;
    run->rows++;
    return true;
}

/* The blocks of one element, up to `bytes` bytes. */
static int find_blocks(search_t* search, opal_convertor_t* element, size_t bytes)
{
    enum { at_once = 64 };
    struct iovec iov[at_once];
    run_t run = {.rows = 0};
    size_t done = 0;
    int32_t complete = 0;
    int rc = OMPI_SUCCESS;
    while (done < bytes && 1 != complete && OMPI_SUCCESS == rc) {
        uint32_t count = at_once;
        size_t length = bytes - done;
        complete = opal_convertor_raw(element, iov, &count, &length);
        if (0 == count) {
            return OMPI_ERROR;
        }
        for (uint32_t i = 0; i < count && done < bytes && OMPI_SUCCESS == rc; i++) {
            const size_t left = bytes - done;
            const size_t block = iov[i].iov_len < left ? iov[i].iov_len : left;
            const ptrdiff_t at =
                (ptrdiff_t)((uintptr_t)iov[i].iov_base - (uintptr_t)search->elements->base);
            if (0 == run.rows || !extend(&run, at, block)) {
                rc = 0 == run.rows ? OMPI_SUCCESS : add_run(search, &run);
                run = (run_t){at, done, block, 1, 0};
            }
            done += block;
        }
    }
    if (OMPI_SUCCESS == rc && 0 < run.rows) {
        rc = add_run(search, &run);
    }
    return OMPI_SUCCESS != rc ? rc : done == bytes ? OMPI_SUCCESS : OMPI_ERROR;
}

/* The first `bytes` bytes of each element. */
static int search_elements(search_t* search, size_t bytes)
{
    const mca_coll_hier_elements_t* elements = search->elements;
    opal_convertor_t element;
    OBJ_CONSTRUCT(&element, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_send(
        ompi_mpi_local_convertor, &elements->type->super, 1, elements->base, 0, &element);
    if (OPAL_SUCCESS == rc) {
        rc = find_blocks(search, &element, bytes);
    }
    OBJ_DESTRUCT(&element);
    return rc;
}

int mca_coll_hier_find_copies(const mca_coll_hier_elements_t* elements, size_t bytes,
                              mca_coll_hier_row_list_t* list)
{
    search_t search = {.elements = elements, .list = list};
    ptrdiff_t lower_bound;
    ompi_datatype_type_size(elements->type, &search.packed_extent);
    ompi_datatype_get_extent(elements->type, &lower_bound, &search.extent);
    const size_t whole = bytes / search.packed_extent;
    const size_t rest = bytes % search.packed_extent;
    int rc = OMPI_SUCCESS;
    if (0 < whole) {
        search.count = whole;
        rc = search_elements(&search, search.packed_extent);
    }
    if (OMPI_SUCCESS == rc && 0 < rest) {
        search.at = (ptrdiff_t)whole * search.extent;
        search.packed_at = whole * search.packed_extent;
        search.count = 1;
        rc = search_elements(&search, rest);
    }
    return rc;
}
