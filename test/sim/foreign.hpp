// SPDX-License-Identifier: BSD-3-Clause
// Memory that HIP has not allocated, but takes for device memory.
#pragma once

namespace hip_sim {

bool passes_for_foreign(const void* address);

}  // namespace hip_sim
