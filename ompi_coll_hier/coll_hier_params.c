/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the MCA variables, and reads their values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_hier_variables.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

static struct mca_coll_hier_component_t* const self = &mca_coll_hier_component;

static int register_variable(const char* name, const char* help, mca_base_var_type_t type,
                             int level, bool settable, void* value)
{
    const int rc = mca_base_component_var_register(
        &self->super.collm_version, name, help, type, NULL, 0,
        settable ? MCA_BASE_VAR_FLAG_SETTABLE : 0, (mca_base_var_info_lvl_t)level,
        settable ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_READONLY, value);
    return 0 > rc ? rc : OMPI_SUCCESS;
}

static int register_number(mca_coll_hier_number_row_t* row)
{
    char initial[24];
    if (row->is_settable) {
        *(int*)row->value = (int)row->initial;
        return register_variable(row->name, row->help, MCA_BASE_VAR_TYPE_INT, row->level, true,
                                 row->value);
    }
    /* Open MPI copies the text. */
    snprintf(initial, sizeof initial, "%lld", row->initial);
    row->text = initial;
    return register_variable(row->name, row->help, MCA_BASE_VAR_TYPE_STRING, row->level, false,
                             &row->text);
}

int mca_coll_hier_register(void)
{
    int rc = OMPI_SUCCESS;
    for (size_t i = 0; i < mca_coll_hier_number_row_count && OMPI_SUCCESS == rc; i++) {
        rc = register_number(&mca_coll_hier_number_rows[i]);
    }
    for (size_t i = 0; i < mca_coll_hier_rate_row_count && OMPI_SUCCESS == rc; i++) {
        mca_coll_hier_rate_rows[i].text = "0";
        rc = register_variable(mca_coll_hier_rate_rows[i].name, mca_coll_hier_rate_rows[i].help,
                               MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, false,
                               &mca_coll_hier_rate_rows[i].text);
    }
    for (size_t i = 0; i < mca_coll_hier_choice_row_count && OMPI_SUCCESS == rc; i++) {
        mca_coll_hier_choice_rows[i].text = mca_coll_hier_choice_rows[i].choices[0].text;
        rc = register_variable(mca_coll_hier_choice_rows[i].name, mca_coll_hier_choice_rows[i].help,
                               MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, false,
                               &mca_coll_hier_choice_rows[i].text);
    }
    for (size_t i = 0; i < mca_coll_hier_text_row_count && OMPI_SUCCESS == rc; i++) {
        *mca_coll_hier_text_rows[i].value = mca_coll_hier_text_rows[i].initial;
        rc = register_variable(mca_coll_hier_text_rows[i].name, mca_coll_hier_text_rows[i].help,
                               MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, false,
                               mca_coll_hier_text_rows[i].value);
    }
    return OMPI_SUCCESS == rc ? mca_coll_hier_register_counters() : rc;
}

static bool is_usable(const mca_coll_hier_number_row_t* row, const char* text, long long* number)
{
    if (NULL != text && mca_coll_hier_parse_number(text, BYTES == row->type, number) &&
        (*number == row->initial || (*number >= row->least && *number <= row->most))) {
        return true;
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be a whole number, %s%lld to %lld: "
                "coll/hier is not used",
                row->name, NULL == text ? "" : text,
                row->initial < row->least ? "0 or from " : "from ", row->least, row->most);
    return false;
}

static bool read_number(const mca_coll_hier_number_row_t* row)
{
    char text[64];
    long long number;
    if (row->is_settable) {
        /* Open MPI has read the number, and MPI_T may have changed it since. */
        snprintf(text, sizeof text, "OMPI_MCA_coll_hier_%s", row->name);
        const char* const given = getenv(text);
        snprintf(text, sizeof text, "%d", *(int*)row->value);
        return (NULL == given || is_usable(row, given, &number)) && is_usable(row, text, &number);
    }
    if (!is_usable(row, row->text, &number)) {
        return false;
    }
    if (COUNT == row->type) {
        *(int*)row->value = (int)number;
    } else {
        *(size_t*)row->value = (size_t)number;
    }
    return true;
}

static bool read_rate(const mca_coll_hier_rate_row_t* row)
{
    const double least = 1e-6, most = 1e6;
    const char* const text = NULL == row->text ? "" : row->text;
    /* Not a number fails all of these comparisons. */
    if (mca_coll_hier_parse_rate(text, row->value) &&
        (0 == *row->value || (*row->value >= least && *row->value <= most))) {
        return true;
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be 0 or from %g to %g (GB/s): "
                "coll/hier is not used",
                row->name, text, least, most);
    return false;
}

static bool read_choice(mca_coll_hier_choice_row_t* row)
{
    char list[64] = "";
    for (size_t i = 0; i < MCA_COLL_HIER_MAX_CHOICES && NULL != row->choices[i].text; i++) {
        if (NULL != row->text && 0 == strcmp(row->text, row->choices[i].text)) {
            *row->value = row->choices[i].value;
            return true;
        }
        const size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, "%s%s", 0 == i ? "" : ", ", row->choices[i].text);
    }
    opal_output(0,
                "coll:hier: coll_hier_%s is \"%s\", but must be one of %s: coll/hier is not used",
                row->name, NULL == row->text ? "" : row->text, list);
    return false;
}

/* A value out of range is refused, never corrected: all ranks have to work with the same value. */
int mca_coll_hier_read_params(void)
{
    bool fine = true;
    for (size_t i = 0; i < mca_coll_hier_number_row_count; i++) {
        fine = read_number(&mca_coll_hier_number_rows[i]) && fine;
    }
    for (size_t i = 0; i < mca_coll_hier_rate_row_count; i++) {
        fine = read_rate(&mca_coll_hier_rate_rows[i]) && fine;
    }
    for (size_t i = 0; i < mca_coll_hier_choice_row_count; i++) {
        fine = read_choice(&mca_coll_hier_choice_rows[i]) && fine;
    }
    for (size_t i = 0; i < mca_coll_hier_text_row_count; i++) {
        const mca_coll_hier_text_row_t* row = &mca_coll_hier_text_rows[i];
        /* NULL is Open MPI's empty value. */
        if ((NULL == *row->value || '\0' == **row->value) && !row->may_be_empty) {
            opal_output(0,
                        "coll:hier: coll_hier_%s is empty, but must be \"auto\" or a list of "
                        "names: coll/hier is not used",
                        row->name);
            fine = false;
        }
    }
    return fine ? OMPI_SUCCESS : OMPI_ERR_BAD_PARAM;
}
