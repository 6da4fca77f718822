/* Derived datatypes in a device's memory, into the host's and out of it by copies that the runtime makes.
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

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"

/* Pieces of one element, one behind the other when packed. */
typedef struct {
    char* at; /* of the first element */
    size_t packed_at;
    size_t bytes;
    size_t rows;
    ptrdiff_t pitch;
} run_t;

/* Of fewer rows each goes by itself: such copies are given to a driver many at a time. */
enum { most_pieces = 256, least_rows = 8 };

/* What is to be done with `count` elements. */
typedef struct {
    char* packed;
    size_t count;
    ptrdiff_t extent;
    size_t packed_extent;
    bool is_pack;
    hier_memory_piece pieces[most_pieces]; /* not copied yet */
    size_t used;
} conversion_t;

static int copy_pieces(conversion_t* conversion)
{
    const size_t used = conversion->used;
    conversion->used = 0;
    return 0 == used ? OMPI_SUCCESS
                     : mca_coll_hier_to_mpi_error(hier_memory_copy(conversion->pieces, used));
}

static int add_rows(conversion_t* conversion, char* at, size_t packed_at, size_t bytes, size_t rows,
                    size_t pitch, size_t packed_pitch)
{
    char* const packed = conversion->packed + packed_at;
    const bool is_pack = conversion->is_pack;
    conversion->pieces[conversion->used++] =
        (hier_memory_piece){.to = is_pack ? packed : at,
                            .from = is_pack ? at : packed,
                            .bytes = bytes,
                            .rows = rows,
                            .to_pitch = is_pack ? packed_pitch : pitch,
                            .from_pitch = is_pack ? pitch : packed_pitch};
    return most_pieces == conversion->used ? copy_pieces(conversion) : OMPI_SUCCESS;
}

static int add_pieces(conversion_t* conversion, char* at, size_t packed_at, size_t bytes,
                      size_t rows, ptrdiff_t pitch, size_t packed_pitch)
{
    /* Elements may lie one upon the other, or backwards. */
    if (rows >= least_rows && pitch >= (ptrdiff_t)bytes) {
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
static bool extend(run_t* run, char* at, size_t bytes)
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
            if (0 == run.rows || !extend(&run, iov[i].iov_base, piece)) {
                rc = 0 == run.rows ? OMPI_SUCCESS : convert_run(conversion, &run);
                run = (run_t){iov[i].iov_base, done, piece, 1, 0};
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
static int convert_equal(conversion_t* conversion, char* base, struct ompi_datatype_t* type,
                         size_t bytes)
{
    opal_convertor_t element;
    OBJ_CONSTRUCT(&element, opal_convertor_t);
    int rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, 1,
                                                      base, 0, &element);
    if (OPAL_SUCCESS == rc) {
        rc = convert_pieces(conversion, &element, bytes);
    }
    OBJ_DESTRUCT(&element);
    return rc;
}

int mca_coll_hier_convert_on_device(char* packed, size_t bytes,
                                    const mca_coll_hier_elements_t* elements, bool is_pack)
{
    ptrdiff_t offset, lower_bound;
    char* const base = (char*)elements->base;
    conversion_t conversion = {.packed = packed, .is_pack = is_pack, .used = 0};
    ompi_datatype_type_size(elements->type, &conversion.packed_extent);
    ompi_datatype_get_extent(elements->type, &lower_bound, &conversion.extent);
    const size_t whole = bytes / conversion.packed_extent;
    const size_t rest = bytes % conversion.packed_extent;
    int rc = OMPI_SUCCESS;
    if (mca_coll_hier_is_dense(elements->type, elements->count, &offset)) {
        rc = add_rows(&conversion, base + offset, 0, bytes, 1, 0, 0);
        return OMPI_SUCCESS == rc ? copy_pieces(&conversion) : rc;
    }
    if (0 < whole) {
        conversion.count = whole;
        rc = convert_equal(&conversion, base, elements->type, conversion.packed_extent);
    }
    if (OMPI_SUCCESS == rc && 0 < rest) {
        conversion.packed += whole * conversion.packed_extent;
        conversion.count = 1;
        rc = convert_equal(&conversion, base + (ptrdiff_t)whole * conversion.extent, elements->type,
                           rest);
    }
    return OMPI_SUCCESS == rc ? copy_pieces(&conversion) : rc;
}
