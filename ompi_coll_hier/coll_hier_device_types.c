/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and unpacks derived datatypes in a device's memory, by copies of the GPU runtime. */
#include <stdlib.h>
#include <string.h>

#include "coll_hier_device_copies.h"
#include "coll_hier_staging.h"

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Nothing is kept of a type with more parts. A list of more copies is not kept either: its copies are
 * made as they are found. */
enum { max_parts = 16384, max_copies = 16384 };

/* The copies of one type, for a certain number of bytes.
 *
 * Open MPI's description of a type identifies it. The address of a type does not: another type may come
 * to lie there. And a type that we kept alive would keep its attributes, whose delete functions the
 * application expects to be called. */
struct mca_coll_hier_copies {
    dt_elem_desc_t* parts; /* NULL: of no type */
    size_t part_count;
    ptrdiff_t extent;
    size_t bytes;

    bool is_complete; /* false: there are too many copies for a list */
    mca_coll_hier_row_list_t list;
};

typedef struct {
    const mca_coll_hier_elements_t* elements;
    char* packed;
    bool is_pack;
} conversion_t;

enum { copies_at_once = 256 };

static int copy_some(const conversion_t* c, const mca_coll_hier_rows_t* rows, size_t count)
{
    hier_strided_copy copies[copies_at_once];
    for (size_t i = 0; i < count; i++) {
        const mca_coll_hier_rows_t* r = &rows[i];
        void* const at = mca_coll_hier_at(c->elements->base, r->at);
        void* const packed_at = c->packed + r->packed_at;
        copies[i] = (hier_strided_copy){.to = c->is_pack ? packed_at : at,
                                        .from = c->is_pack ? at : packed_at,
                                        .bytes = r->bytes,
                                        .rows = r->rows,
                                        .to_pitch = c->is_pack ? r->packed_pitch : r->pitch,
                                        .from_pitch = c->is_pack ? r->pitch : r->packed_pitch};
    }
    return mca_coll_hier_to_mpi_error(hier_memory_copy(copies, count));
}

static int copy_rows(const conversion_t* c, const mca_coll_hier_rows_t* rows, size_t count)
{
    int rc = OMPI_SUCCESS;
    for (size_t done = 0; done < count && OMPI_SUCCESS == rc; done += copies_at_once) {
        const size_t left = count - done;
        rc = copy_some(c, rows + done, left < copies_at_once ? left : copies_at_once);
    }
    return rc;
}

/* A list that is full is copied and begins again. */
typedef struct {
    mca_coll_hier_row_list_t list;
    conversion_t conversion;
} streamed_list_t;

static int copy_out(mca_coll_hier_row_list_t* list)
{
    const size_t used = list->used;
    list->used = 0;
    return copy_rows(&((streamed_list_t*)list)->conversion, list->rows, used);
}

static int stream(const conversion_t* conversion, size_t bytes)
{
    mca_coll_hier_rows_t rows[copies_at_once];
    streamed_list_t streamed = {
        .list = {.rows = rows, .room = copies_at_once, .make_room = copy_out},
        .conversion = *conversion};
    const int rc = mca_coll_hier_find_copies(conversion->elements, bytes, &streamed.list);
    return OMPI_SUCCESS == rc ? copy_out(&streamed.list) : rc;
}

static int enlarge(mca_coll_hier_row_list_t* list)
{
    const size_t room = 0 == list->room ? 16 : 4 * list->room;
    mca_coll_hier_rows_t* rows =
        room > max_copies ? NULL : (mca_coll_hier_rows_t*)realloc(list->rows, room * sizeof *rows);
    if (NULL == rows) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    list->rows = rows;
    list->room = room;
    return OMPI_SUCCESS;
}

void mca_coll_hier_drop_copies(mca_coll_hier_copies_t** copies)
{
    if (NULL != *copies) {
        free((*copies)->parts);
        free((*copies)->list.rows);
    }
    free(*copies);
    *copies = NULL;
}

static bool are_of(const mca_coll_hier_copies_t* copies, const mca_coll_hier_elements_t* elements,
                   size_t bytes)
{
    const opal_datatype_t* type = &elements->type->super;
    const size_t part_bytes = copies->part_count * sizeof *copies->parts;
    return NULL != copies->parts && copies->bytes == bytes &&
           copies->part_count == type->opt_desc.used && copies->extent == type->ub - type->lb &&
           0 == memcmp(copies->parts, type->opt_desc.desc, part_bytes);
}

static void identify(mca_coll_hier_copies_t* copies, const mca_coll_hier_elements_t* elements,
                     size_t bytes)
{
    const opal_datatype_t* type = &elements->type->super;
    const size_t parts = type->opt_desc.used;
    free(copies->parts);
    copies->parts = NULL;
    if (0 < parts && max_parts >= parts) {
        copies->parts = (dt_elem_desc_t*)malloc(parts * sizeof *copies->parts);
    }
    if (NULL != copies->parts) {
        memcpy(copies->parts, type->opt_desc.desc, parts * sizeof *copies->parts);
    }
    copies->part_count = parts;
    copies->extent = type->ub - type->lb;
    copies->bytes = bytes;
}

/* Most calls have the type of the call before, and walking through a large type takes longer than
 * copying its bytes. NULL: there is no memory for the list. */
static const mca_coll_hier_copies_t* copies_of(const mca_coll_hier_elements_t* elements,
                                               size_t bytes)
{
    mca_coll_hier_copies_t* copies = *elements->copies;
    if (NULL == copies) {
        copies = (mca_coll_hier_copies_t*)calloc(1, sizeof *copies);
        *elements->copies = copies;
    }
    if (NULL == copies || are_of(copies, elements, bytes)) {
        return copies;
    }
    copies->list.used = 0;
    copies->list.make_room = enlarge;
    copies->is_complete = OMPI_SUCCESS == mca_coll_hier_find_copies(elements, bytes, &copies->list);
    if (!copies->is_complete) {
        free(copies->list.rows);
        copies->list.rows = NULL;
        copies->list.room = 0;
    }
    identify(copies, elements, bytes);
    return copies;
}

bool mca_coll_hier_is_regular(const mca_coll_hier_elements_t* elements, size_t bytes)
{
    enum { min_copy = 32768 };
    if (min_copy > bytes) {
        return false;
    }
    const mca_coll_hier_copies_t* copies = copies_of(elements, bytes);
    return NULL != copies && copies->is_complete && min_copy <= bytes / copies->list.used;
}

int mca_coll_hier_convert_on_device(char* packed, size_t bytes,
                                    const mca_coll_hier_elements_t* elements, bool is_pack)
{
    const conversion_t conversion = {elements, packed, is_pack};
    ptrdiff_t offset;
    if (mca_coll_hier_is_dense(elements->type, elements->count, &offset)) {
        const mca_coll_hier_rows_t all = {offset, 0, bytes, 1, 0, 0};
        return copy_rows(&conversion, &all, 1);
    }
    const mca_coll_hier_copies_t* copies = copies_of(elements, bytes);
    if (NULL != copies && copies->is_complete) {
        return copy_rows(&conversion, copies->list.rows, copies->list.used);
    }
    return stream(&conversion, bytes);
}
