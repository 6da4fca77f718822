// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hier {

// Can the CPU read at this address? Asks the kernel, without a read of its own.
bool is_readable(const void* address);

}  // namespace hier
