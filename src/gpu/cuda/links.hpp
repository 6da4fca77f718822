// SPDX-License-Identifier: BSD-3-Clause
// How the GPUs of this host are linked.
#pragma once

namespace hier::gpu {

// Is there a GPU with links to others, each of its own, and no switch in between? Asked once.
bool has_direct_links();

}  // namespace hier::gpu
