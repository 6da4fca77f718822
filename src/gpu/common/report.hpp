// SPDX-License-Identifier: BSD-3-Clause
// A module writes its messages to the log of the core.
#pragma once

#include <atomic>

#include "gpu/common/names.hpp"
#include "hier/status.hpp"

namespace hier::gpu {

void set_report(void (*sink)(int level, const char* line));
__attribute__((format(printf, 2, 3))) void report(int level, const char* text, ...);
// Reports what has failed and the runtime's reason.
Status failed_with(hipError_t error, const char* what);
// The same for a failure that hier can work around: an error the first time, later only a detail.
Status refused_with(hipError_t error, const char* what, std::atomic<bool>& is_told);

}  // namespace hier::gpu
