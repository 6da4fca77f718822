// SPDX-License-Identifier: BSD-3-Clause
// Streams that are captured into a graph. Only the ban on other calls is simulated, not the graph.
#pragma once

#include <hip/hip_runtime_api.h>

namespace hip_sim {

// Is the calling thread's call forbidden, because some thread captures a stream? Such a call ends
// the capture.
bool is_forbidden_by_capture();
bool is_captured(hipStream_t stream);

}  // namespace hip_sim
