// SPDX-License-Identifier: BSD-3-Clause
// The C interface to what the process has counted.
#include "base/statistics.hpp"

unsigned long long hier_statistic(int which)
{
    return which < 0 || which >= HIER_STATISTICS ? 0 : hier::Statistics::instance().sum(which);
}

void hier_want_call_times(int is_wanted)
{
    hier::Statistics::instance().want_call_times(is_wanted != 0);
}
