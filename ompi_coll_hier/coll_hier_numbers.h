/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in texts of the user. false: the text is anything else, or too large. */
#ifndef MCA_COLL_HIER_NUMBERS_H
#define MCA_COLL_HIER_NUMBERS_H

#include <stdbool.h>

/* A whole number, with the units k, m and g of Open MPI if `has_units`. */
bool mca_coll_hier_parse_number(const char* text, bool has_units, long long* number);
/* A decimal number. The point does not depend on the application's locale. */
bool mca_coll_hier_parse_rate(const char* text, double* rate);

#endif
