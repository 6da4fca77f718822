// What of virtual memory management there is now.
#pragma once

#include <cstdint>

namespace hip_sim {

std::uint64_t live_handles();  // kept by the application, or by a mapping
std::uint64_t live_reservations();

}  // namespace hip_sim
