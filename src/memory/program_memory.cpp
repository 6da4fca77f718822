// SPDX-License-Identifier: BSD-3-Clause
#include "memory/program_memory.hpp"

#include <link.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

// The end of the heap, as glibc knows it. null: not glibc. Do not call sbrk(0): UCX's version sets the end again, and may
// undo another thread's growth.
extern "C" void* end_of_heap __asm__("__curbrk") __attribute__((weak));

namespace hier {
namespace {

struct Range {
    std::uintptr_t begin = 0, end = 0;
    bool has(std::uintptr_t at) const { return begin <= at && at < end; }
};

struct Places {
    std::array<Range, 4> data;  // segments of the executable
    Range stack;
    std::uintptr_t heap = UINTPTR_MAX;  // where it begins
};

// Of the executable, with what is not in its file. It comes first.
int add_data(dl_phdr_info* object, std::size_t, void* places)
{
    auto* to = static_cast<Places*>(places)->data.begin();
    for (int i = 0; i < object->dlpi_phnum && to != static_cast<Places*>(places)->data.end(); i++) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        *to++ = {begin, begin + segment.p_memsz};
    }
    return 1;
}

// The kernel maps nothing where the stack may still grow.
std::uintptr_t stack_bytes()
{
    constexpr rlim_t most = 64 << 20;
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return 0;
    return static_cast<std::uintptr_t>(std::min(limit.rlim_cur, most));
}

// proc(5) numbers the fields of `stat`. The second one, in parentheses, may have blanks.
void read_places(Places& places)
{
    constexpr std::size_t after_name = 3, start_stack = 28, start_heap = 47;
    std::ifstream file("/proc/self/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
    std::string field;
    for (std::size_t i = after_name; i <= start_heap && rest >> field; i++) {
        const std::uintptr_t value = std::strtoull(field.c_str(), nullptr, 10);
        if (value == 0) continue;
        if (i == start_stack) places.stack = {value - stack_bytes(), value};
        if (i == start_heap) places.heap = value;
    }
}

Places find_places()
{
    Places places;
    try {
        dl_iterate_phdr(add_data, &places);
        read_places(places);
    } catch (const std::exception&) {  // no memory: fewer places are known
    }
    return places;
}

}  // namespace

bool is_of_program(const void* address)
{
    static const Places places = find_places();
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const bool has_end = &end_of_heap != nullptr;
    const Range heap{places.heap, has_end ? reinterpret_cast<std::uintptr_t>(end_of_heap) : 0};
    return places.stack.has(at) || heap.has(at) ||
           std::any_of(places.data.begin(), places.data.end(),
                       [at](const Range& range) { return range.has(at); });
}

}  // namespace hier
