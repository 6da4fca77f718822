// SPDX-License-Identifier: BSD-3-Clause
// Messages of a module go to its user's log.
#pragma once

#include <atomic>

#include "gpu/common/names.hpp"
#include "hier/status.hpp"

namespace hier::gpu {

void set_report(void (*sink)(int level, const char* line));
__attribute__((format(printf, 2, 3))) void report(int level, const char* text, ...);
// Reports what was being done and the runtime's reason.
Status failed_with(hipError_t error, const char* what);
// The same of what can be done without: the first time as an error, then as a detail.
Status refused_with(hipError_t error, const char* what, std::atomic<bool>& is_told);

}  // namespace hier::gpu
