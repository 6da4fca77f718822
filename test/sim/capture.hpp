// SPDX-License-Identifier: BSD-3-Clause
// Streams that are captured into a graph: what nobody may call meanwhile. Nothing of the graph itself.
#pragma once

#include <hip/hip_runtime_api.h>

namespace hip_sim {

// For the calling thread, while a stream is captured by any. Asking ends the capture.
bool is_forbidden_by_capture();
bool is_captured(hipStream_t stream);

}  // namespace hip_sim
