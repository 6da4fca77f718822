/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes in a device's memory, packed and unpacked by copies that the runtime makes.
 *
 * A copy costs some microseconds however small it is, and an array's column has a piece a row. So what lies
 * at equal distances becomes the rows of one copy, in one of two ways:
 *
 *   inside an element     the pieces of equal length, as a vector has them: a copy for each run of
 *                         such pieces and each element
 *   over the elements     the same piece of all elements, which are an extent apart: a copy a piece
 *
 * whichever takes fewer copies; where one element goes on with the rows of the one before, it is one copy.
 * Gaps are not touched. */
#include "coll_hier.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Pieces of one element, one behind the other when packed. */
typedef struct {
    ptrdiff_t at; /* in the first element */
    size_t packed_at;
    size_t bytes;
    size_t rows;
    ptrdiff_t pitch;
} run_t;

/* What one copy moves: `rows` times `bytes` bytes, from the elements' base and from the packed bytes on. */
typedef struct {
    ptrdiff_t at;
    size_t packed_at;
    size_t bytes;
    size_t rows;
    size_t pitch, packed_pitch;
} rows_t;

/* Of fewer rows each goes by itself: such copies are given to a driver many at a time. */
enum { copies_at_once = 256, min_rows = 8 };

/* Of a type with more parts nothing is kept for the next call; nor is a plan of more copies, which are
 * made as they are found. */
enum { max_parts = 16384, max_copies = 16384 };

struct mca_coll_hier_plan {
    /* What it is of. A type is known by what Open MPI has made of it: another may come to its address,
     * and kept alive it would keep its attributes, whose functions the application wants called. */
    dt_elem_desc_t* parts; /* NULL: of nothing */
    size_t part_count;
    ptrdiff_t extent;
    size_t bytes;

    bool is_complete; /* or there are too many copies for a plan */
    rows_t* copies;
    size_t used, room;
};

static int copy_some(const rows_t* copies, size_t count, const mca_coll_hier_elements_t* elements,
                     char* packed, bool is_pack)
{
    hier_memory_piece pieces[copies_at_once];
    for (size_t i = 0; i < count; i++) {
        const rows_t* rows = &copies[i];
        void* const at = mca_coll_hier_at(elements->base, rows->at);
        void* const packed_at = packed + rows->packed_at;
        pieces[i] = (hier_memory_piece){.to = is_pack ? packed_at : at,
                                        .from = is_pack ? at : packed_at,
                                        .bytes = rows->bytes,
                                        .rows = rows->rows,
                                        .to_pitch = is_pack ? rows->packed_pitch : rows->pitch,
                                        .from_pitch = is_pack ? rows->pitch : rows->packed_pitch};
    }
    return mca_coll_hier_to_mpi_error(hier_memory_copy(pieces, count));
}

static int copy_rows(const rows_t* copies, size_t count, const mca_coll_hier_elements_t* elements,
                     char* packed, bool is_pack)
{
    int rc = OMPI_SUCCESS;
    for (size_t done = 0; done < count && OMPI_SUCCESS == rc; done += copies_at_once) {
        const size_t left = count - done;
        rc = copy_some(copies + done, left < copies_at_once ? left : copies_at_once, elements,
                       packed, is_pack);
    }
    return rc;
}

/* What is to be done with `count` elements. */
typedef struct {
    ptrdiff_t at;
    size_t packed_at;
    size_t count;
    ptrdiff_t extent;
    size_t packed_extent;
    const mca_coll_hier_elements_t* elements;
    mca_coll_hier_plan_t* plan; /* what is not done yet */
    char* packed;               /* NULL: only the plan is wanted */
    bool is_pack;
} conversion_t;

static int copy_pieces(conversion_t* conversion)
{
    const size_t used = conversion->plan->used;
    conversion->plan->used = 0;
    return copy_rows(conversion->plan->copies, used, conversion->elements, conversion->packed,
                     conversion->is_pack);
}

static int enlarge(mca_coll_hier_plan_t* plan)
{
    const size_t room = 0 == plan->room ? 16 : 4 * plan->room;
    rows_t* copies =
        room > max_copies ? NULL : (rows_t*)realloc(plan->copies, room * sizeof *copies);
    if (NULL == copies) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    plan->copies = copies;
    plan->room = room;
    return OMPI_SUCCESS;
}

static int add_rows(conversion_t* conversion, ptrdiff_t at, size_t packed_at, size_t bytes,
                    size_t rows, size_t pitch, size_t packed_pitch)
{
    mca_coll_hier_plan_t* plan = conversion->plan;
    int rc = OMPI_SUCCESS;
    if (plan->used == plan->room) {
        rc = NULL == conversion->packed ? enlarge(plan) : copy_pieces(conversion);
    }
    if (OMPI_SUCCESS == rc) {
        plan->copies[plan->used++] =
            (rows_t){conversion->at + at, conversion->packed_at + packed_at, bytes, rows, pitch,
                     packed_pitch};
    }
    return rc;
}

static int add_pieces(conversion_t* conversion, ptrdiff_t at, size_t packed_at, size_t bytes,
                      size_t rows, ptrdiff_t pitch, size_t packed_pitch)
{
    /* Elements may lie one upon the other, or backwards. */
    if (rows >= min_rows && pitch >= (ptrdiff_t)bytes) {
        return add_rows(conversion, at, packed_at, bytes, rows, (size_t)pitch, packed_pitch);
    }
    int rc = OMPI_SUCCESS;
    for (size_t row = 0; row < rows && OMPI_SUCCESS == rc; row++) {
        rc = add_rows(conversion, at + (ptrdiff_t)row * pitch, packed_at + row * packed_pitch,
                      bytes, 1, 0, 0);
    }
    return rc;
}

static int inside_elements(conversion_t* conversion, const run_t* run)
{
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < conversion->count && OMPI_SUCCESS == rc; i++) {
        rc = add_pieces(conversion, run->at + (ptrdiff_t)i * conversion->extent,
                        run->packed_at + i * conversion->packed_extent, run->bytes, run->rows,
                        run->pitch, run->bytes);
    }
    return rc;
}

static int over_elements(conversion_t* conversion, const run_t* run)
{
    int rc = OMPI_SUCCESS;
    for (size_t row = 0; row < run->rows && OMPI_SUCCESS == rc; row++) {
        rc = add_pieces(conversion, run->at + (ptrdiff_t)row * run->pitch,
                        run->packed_at + row * run->bytes, run->bytes, conversion->count,
                        conversion->extent, conversion->packed_extent);
    }
    return rc;
}

static int convert_run(conversion_t* conversion, const run_t* run)
{
    const bool is_whole = run->bytes * run->rows == conversion->packed_extent;
    if (is_whole && conversion->extent == (ptrdiff_t)run->rows * run->pitch) {
        /* The next element goes on with it. */
        return add_pieces(conversion, run->at, run->packed_at, run->bytes,
                          run->rows * conversion->count, run->pitch, run->bytes);
    }
    return run->rows < conversion->count ? over_elements(conversion, run)
                                         : inside_elements(conversion, run);
}

/* Does the next piece go on with the run? Then it is in it. */
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

/* All pieces of one element, `bytes` at most. */
static int convert_pieces(conversion_t* conversion, opal_convertor_t* element, size_t bytes)
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
            const size_t piece = iov[i].iov_len < left ? iov[i].iov_len : left;
            const ptrdiff_t at =
                (ptrdiff_t)((uintptr_t)iov[i].iov_base - (uintptr_t)conversion->elements->base);
            if (0 == run.rows || !extend(&run, at, piece)) {
                rc = 0 == run.rows ? OMPI_SUCCESS : convert_run(conversion, &run);
                run = (run_t){at, done, piece, 1, 0};
            }
            done += piece;
        }
    }
    if (OMPI_SUCCESS == rc && 0 < run.rows) {
        rc = convert_run(conversion, &run);
    }
    return OMPI_SUCCESS != rc ? rc : done == bytes ? OMPI_SUCCESS : OMPI_ERROR;
}

/* `bytes` of each element. */
static int convert_equal(conversion_t* conversion, size_t bytes)
{
    const mca_coll_hier_elements_t* elements = conversion->elements;
    opal_convertor_t element;
    OBJ_CONSTRUCT(&element, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_send(
        ompi_mpi_local_convertor, &elements->type->super, 1, elements->base, 0, &element);
    if (OPAL_SUCCESS == rc) {
        rc = convert_pieces(conversion, &element, bytes);
    }
    OBJ_DESTRUCT(&element);
    return rc;
}

/* The first `bytes` bytes of all elements. */
static int convert_all(conversion_t* conversion, size_t bytes)
{
    struct ompi_datatype_t* type = conversion->elements->type;
    ptrdiff_t lower_bound;
    ompi_datatype_type_size(type, &conversion->packed_extent);
    ompi_datatype_get_extent(type, &lower_bound, &conversion->extent);
    const size_t whole = bytes / conversion->packed_extent;
    const size_t rest = bytes % conversion->packed_extent;
    int rc = OMPI_SUCCESS;
    if (0 < whole) {
        conversion->count = whole;
        rc = convert_equal(conversion, conversion->packed_extent);
    }
    if (OMPI_SUCCESS == rc && 0 < rest) {
        conversion->at = (ptrdiff_t)whole * conversion->extent;
        conversion->packed_at = whole * conversion->packed_extent;
        conversion->count = 1;
        rc = convert_equal(conversion, rest);
    }
    return rc;
}

void mca_coll_hier_drop_plan(mca_coll_hier_plan_t** plan)
{
    if (NULL != *plan) {
        free((*plan)->parts);
        free((*plan)->copies);
    }
    free(*plan);
    *plan = NULL;
}

static bool is_of(const mca_coll_hier_plan_t* plan, const mca_coll_hier_elements_t* elements,
                  size_t bytes)
{
    const opal_datatype_t* type = &elements->type->super;
    return NULL != plan->parts && plan->bytes == bytes &&
           plan->part_count == type->opt_desc.used && plan->extent == type->ub - type->lb &&
           0 == memcmp(plan->parts, type->opt_desc.desc, plan->part_count * sizeof *plan->parts);
}

static void remember(mca_coll_hier_plan_t* plan, const mca_coll_hier_elements_t* elements,
                     size_t bytes)
{
    const opal_datatype_t* type = &elements->type->super;
    const size_t parts = type->opt_desc.used;
    free(plan->parts);
    plan->parts = NULL;
    if (0 < parts && max_parts >= parts) {
        plan->parts = (dt_elem_desc_t*)malloc(parts * sizeof *plan->parts);
    }
    if (NULL != plan->parts) {
        memcpy(plan->parts, type->opt_desc.desc, parts * sizeof *plan->parts);
    }
    plan->part_count = parts;
    plan->extent = type->ub - type->lb;
    plan->bytes = bytes;
}

/* A large type takes longer to walk through than its bytes take to copy, and most calls have the type
 * of the last. NULL: there is no memory for it. */
static const mca_coll_hier_plan_t* plan_of(const mca_coll_hier_elements_t* elements, size_t bytes)
{
    mca_coll_hier_plan_t* plan = *elements->plan;
    if (NULL == plan) {
        plan = (mca_coll_hier_plan_t*)calloc(1, sizeof *plan);
        *elements->plan = plan;
    }
    if (NULL == plan || is_of(plan, elements, bytes)) {
        return plan;
    }
    plan->used = 0;
    conversion_t conversion = {.plan = plan, .elements = elements};
    plan->is_complete = OMPI_SUCCESS == convert_all(&conversion, bytes);
    if (!plan->is_complete) {
        free(plan->copies);
        plan->copies = NULL;
        plan->room = 0;
    }
    remember(plan, elements, bytes);
    return plan;
}

bool mca_coll_hier_is_regular(const mca_coll_hier_elements_t* elements, size_t bytes)
{
    enum { min_copy = 32768 };
    if (min_copy > bytes) {
        return false;
    }
    const mca_coll_hier_plan_t* plan = plan_of(elements, bytes);
    return NULL != plan && plan->is_complete && min_copy <= bytes / plan->used;
}

int mca_coll_hier_convert_on_device(char* packed, size_t bytes,
                                    const mca_coll_hier_elements_t* elements, bool is_pack)
{
    ptrdiff_t offset;
    if (mca_coll_hier_is_dense(elements->type, elements->count, &offset)) {
        const rows_t all = {offset, 0, bytes, 1, 0, 0};
        return copy_rows(&all, 1, elements, packed, is_pack);
    }
    const mca_coll_hier_plan_t* plan = plan_of(elements, bytes);
    if (NULL != plan && plan->is_complete) {
        return copy_rows(plan->copies, plan->used, elements, packed, is_pack);
    }
    rows_t copies[copies_at_once];
    mca_coll_hier_plan_t some = {.copies = copies, .room = copies_at_once};
    conversion_t conversion = {
        .elements = elements, .plan = &some, .packed = packed, .is_pack = is_pack};
    const int rc = convert_all(&conversion, bytes);
    return OMPI_SUCCESS == rc ? copy_pieces(&conversion) : rc;
}
