// SPDX-License-Identifier: BSD-3-Clause
// One sink for the whole process, given by the caller of the C interface.
#pragma once

#include "hier/hier.h"

namespace hier {

void set_log(int level, void (*sink)(int level, const char* line));
bool log_enabled(int level);
__attribute__((format(printf, 2, 3))) void log(int level, const char* format, ...);

}  // namespace hier
