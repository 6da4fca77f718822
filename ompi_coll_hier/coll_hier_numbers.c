/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the user: all of the text, and nothing else. */
#define _GNU_SOURCE /* strtod_l */
#include "coll_hier_numbers.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

bool mca_coll_hier_parse_number(const char* text, bool has_units, long long* number)
{
    static const char units[] = "kmg";
    char* end;
    if (isspace((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    *number = strtoll(text, &end, 0);
    if (end == text || 0 != errno) {
        return false;
    }
    const char* const unit = '\0' == *end ? NULL : strchr(units, tolower((unsigned char)*end));
    if (has_units && NULL != unit) {
        if (__builtin_mul_overflow(*number, 1LL << (10 * (unit - units + 1)), number)) {
            return false;
        }
        end++;
    }
    return '\0' == *end;
}

bool mca_coll_hier_parse_rate(const char* text, double* rate)
{
    char* end;
    if (isspace((unsigned char)*text)) {
        return false;
    }
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if ((locale_t)0 == c) {
        return false;
    }
    errno = 0;
    *rate = strtod_l(text, &end, c);
    const bool is_in_range = 0 == errno;
    freelocale(c);
    return is_in_range && end != text && '\0' == *end;
}
