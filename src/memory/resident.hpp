// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace hier {

// Does the CPU have the pages of this memory, or has a GPU runtime moved some of them to a device?
// Asks the kernel about a few pages and touches none. A page that was never touched is not with the
// CPU.
bool is_resident(const void* address, std::size_t length);

}  // namespace hier
