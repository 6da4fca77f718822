// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hier {

// Can the CPU read there? Asks the kernel, without touching it.
bool is_readable(const void* address);

}  // namespace hier
