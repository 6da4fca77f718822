/* SPDX-License-Identifier: BSD-3-Clause */
/* The MCA variables, one row each. */
#ifndef MCA_COLL_HIER_VARIABLES_H
#define MCA_COLL_HIER_VARIABLES_H

#include "coll_hier.h"

BEGIN_C_DECLS

enum { MCA_COLL_HIER_MAX_CHOICES = 4 };

/* Open MPI reads "1,5" as 1 and a word as 0. So numbers are texts for Open MPI, and we read them
 * ourselves. */
typedef struct {
    const char* name;
    enum { COUNT, BYTES } type; /* of *value: int, size_t */
    void* value;
    long long initial, least, most; /* `initial` is allowed even if it is outside the range */
    int level;
    const char* help;
    bool is_settable; /* by MPI_T, for communicators without a team: a number for Open MPI too */
    const char* text;
} mca_coll_hier_number_row_t;

typedef struct {
    const char* name;
    double* value; /* 0 by default */
    const char* help;
    const char* text;
} mca_coll_hier_rate_row_t;

typedef struct {
    const char* name;
    int* value;
    const char* text;
    struct {
        int value;
        const char* text;
    } choices[MCA_COLL_HIER_MAX_CHOICES];
    const char* help;
} mca_coll_hier_choice_row_t;

typedef struct {
    const char* name;
    const char** value;
    const char* initial;
    bool may_be_empty;
    const char* help;
} mca_coll_hier_text_row_t;

extern mca_coll_hier_number_row_t mca_coll_hier_number_rows[];
extern const size_t mca_coll_hier_number_row_count;
extern mca_coll_hier_rate_row_t mca_coll_hier_rate_rows[];
extern const size_t mca_coll_hier_rate_row_count;
extern mca_coll_hier_choice_row_t mca_coll_hier_choice_rows[];
extern const size_t mca_coll_hier_choice_row_count;
extern const mca_coll_hier_text_row_t mca_coll_hier_text_rows[];
extern const size_t mca_coll_hier_text_row_count;

END_C_DECLS
#endif
