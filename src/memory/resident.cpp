// SPDX-License-Identifier: BSD-3-Clause
#include "memory/resident.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace hier {
namespace {

std::uintptr_t page_bytes()
{
    static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

// Tells which pages the CPU has. /proc/self/pagemap also knows the pages that AMD's driver has
// moved to a device. If that file cannot be read, mincore() answers, which takes such pages for the
// CPU's.
class PageMap {
public:
    PageMap() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
    ~PageMap()
    {
        if (file_ >= 0) close(file_);
    }
    PageMap(const PageMap&) = delete;
    PageMap& operator=(const PageMap&) = delete;

    bool has(std::uintptr_t page) const
    {
        constexpr std::uint64_t present = 1ull << 63;
        std::uint64_t word = 0;
        if (file_ >= 0 &&
            pread(file_, &word, sizeof word, static_cast<off_t>(page * sizeof word)) ==
                static_cast<ssize_t>(sizeof word))
            return (word & present) != 0;
        unsigned char state = 0;
        void* const at = reinterpret_cast<void*>(page * page_bytes());
        return mincore(at, page_bytes(), &state) != 0 || (state & 1) != 0;
    }

private:
    int file_;
};

}  // namespace

bool is_resident(const void* address, std::size_t length)
{
    const std::uintptr_t page = page_bytes();
    constexpr std::size_t looks = 8;
    const auto first = reinterpret_cast<std::uintptr_t>(address) / page;
    const auto pages = (reinterpret_cast<std::uintptr_t>(address) + length - 1) / page - first;
    const std::size_t steps = std::min<std::size_t>(pages, looks - 1);
    const PageMap map;
    for (std::size_t i = 0; i <= steps; i++) {
        if (!map.has(first + (steps == 0 ? 0 : pages * i / steps))) return false;
    }
    return true;
}

}  // namespace hier
