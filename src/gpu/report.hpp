// What a module has to say goes to its user's log.
#pragma once

#include "gpu/names.hpp"
#include "hier/status.hpp"

namespace hier::gpu {

void set_report(void (*sink)(int level, const char* line));
__attribute__((format(printf, 2, 3))) void report(int level, const char* text, ...);
// Reports what was being done and the runtime's reason.
Status failed_with(hipError_t error, const char* what);

}  // namespace hier::gpu
