// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hier::gpu {

// Does any GPU of this host have a link of its own to another GPU, without a switch in between?
// Asks NVML once.
bool has_direct_links();

}  // namespace hier::gpu
