// SPDX-License-Identifier: BSD-3-Clause
#include "memory/program_memory.hpp"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

// Where the heap ends, as glibc knows it. null: not glibc. sbrk(0) will not do where UCX has put its own in place: that one
// sets the end once more, to what it has read before, and may so take away what another thread has just got.
extern "C" void* __curbrk __attribute__((weak));

namespace hier {
namespace {

struct Range {
    std::uintptr_t begin = 0, end = 0;
    bool has(std::uintptr_t at) const { return begin <= at && at < end; }
};

struct Places {
    std::vector<Range> data;
    Range stack;
    std::uintptr_t heap = UINTPTR_MAX;  // where it begins
};

// Of the executable, with what is not in its file. It comes first.
int add_data(dl_phdr_info* object, std::size_t, void* ranges)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        static_cast<std::vector<Range>*>(ranges)->push_back({begin, begin + segment.p_memsz});
    }
    return 1;
}

// The kernel keeps at least 128 MiB below the top of the stack free of other mappings.
constexpr std::uintptr_t stack_bytes = 64 << 20;

// proc(5) numbers the fields of `stat`. The second one, in parentheses, may have blanks.
Places find_places()
{
    constexpr std::size_t after_name = 3, start_stack = 28, start_heap = 47;
    Places places;
    dl_iterate_phdr(add_data, &places.data);
    std::ifstream file("/proc/self/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
    std::string field;
    for (std::size_t i = after_name; i <= start_heap && rest >> field; i++) {
        const std::uintptr_t value = std::strtoull(field.c_str(), nullptr, 10);
        if (value == 0) continue;
        if (i == start_stack) places.stack = {value - stack_bytes, value};
        if (i == start_heap) places.heap = value;
    }
    return places;
}

}  // namespace

bool is_of_program(const void* address)
{
    static const Places& places = *new Places(find_places());
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const Range heap{places.heap,
                     &__curbrk != nullptr ? reinterpret_cast<std::uintptr_t>(__curbrk) : 0};
    return places.stack.has(at) || heap.has(at) ||
           std::any_of(places.data.begin(), places.data.end(),
                       [at](const Range& range) { return range.has(at); });
}

}  // namespace hier
