#include "memory/resident.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace hier {

bool is_resident(const void* address, std::size_t length)
{
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    constexpr std::size_t looks = 8;
    const auto first = reinterpret_cast<std::uintptr_t>(address) / page;
    const auto pages = (reinterpret_cast<std::uintptr_t>(address) + length - 1) / page - first;
    const std::size_t steps = std::min<std::size_t>(pages, looks - 1);
    for (std::size_t i = 0; i <= steps; i++) {
        const auto at = (first + (steps == 0 ? 0 : pages * i / steps)) * page;
        unsigned char state = 0;
        if (mincore(reinterpret_cast<void*>(at), page, &state) == 0 && (state & 1) == 0)
            return false;
    }
    return true;
}

}  // namespace hier
