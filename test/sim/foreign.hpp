// SPDX-License-Identifier: BSD-3-Clause
// Memory that is not HIP's, and yet passes for a device's.
#pragma once

namespace hip_sim {

bool passes_for_foreign(const void* address);

}  // namespace hip_sim
