// SPDX-License-Identifier: BSD-3-Clause
#include "window.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "bar.hpp"
#include "options.hpp"

namespace hip_sim {

namespace {

// Addresses that were in use. They are kept, inaccessible, for the next window of the same size. A
// cache that looks at addresses alone shall meet an old address with other memory behind it.
struct Kept {
    std::mutex mutex;
    std::map<std::pair<Use, std::size_t>, std::vector<void*>> addresses;
};

Kept& kept()
{
    static Kept& made = *new Kept;
    return made;
}

void* kept_address(std::size_t pages, Use use)
{
    Kept& k = kept();
    const std::lock_guard lock(k.mutex);
    auto& addresses = k.addresses[{use, pages}];
    if (addresses.empty()) return nullptr;
    void* address = addresses.back();
    addresses.pop_back();
    return address;
}

void keep_address(void* address, std::size_t pages, Use use)
{
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(address, pages, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        give_up("cannot keep the address %p", address);
    Kept& k = kept();
    const std::lock_guard lock(k.mutex);
    k.addresses[{use, pages}].push_back(address);
}

}  // namespace

std::size_t whole_pages(std::size_t bytes)
{
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

void* reserve_gpu_pages(std::size_t bytes)
{
    constexpr std::size_t gpu_page = 64 << 10;
    const std::size_t whole = (bytes + gpu_page - 1) / gpu_page * gpu_page;
    void* const base = mmap(nullptr, whole + gpu_page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    return static_cast<std::byte*>(base) + (gpu_page - address % gpu_page) % gpu_page;
}

bool open_window(int fd, std::size_t bytes, Use use, Window& window)
{
    const std::size_t pages = whole_pages(bytes);
    void* alias = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (alias == MAP_FAILED) return false;

    void* address = kept_address(pages, use);
    if (address == nullptr && use != Use::allocation) address = reserve_gpu_pages(pages);
    const bool is_open = !options().hidden || (options().has_large_bar && use != Use::mapping);
    const bool is_by_bar = is_open && options().needs_flush;
    const int access = !is_open ? PROT_NONE : is_by_bar ? PROT_READ : PROT_READ | PROT_WRITE;
    const int sharing = is_by_bar ? MAP_PRIVATE : MAP_SHARED;
    const int fixed = address != nullptr ? MAP_FIXED : 0;
    void* base = mmap(address, pages, access, sharing | fixed, fd, 0);
    if (base == MAP_FAILED) {
        if (address != nullptr) keep_address(address, pages, use);
        munmap(alias, pages);
        return false;
    }
    if (is_by_bar) open_bar(static_cast<std::byte*>(base), static_cast<std::byte*>(alias), pages);
    window = {static_cast<std::byte*>(base), static_cast<std::byte*>(alias)};
    return true;
}

void close_window(const Window& window, std::size_t bytes, Use use)
{
    const std::size_t pages = whole_pages(bytes);
    if (options().needs_flush) close_bar(window.base);
    munmap(window.alias, pages);
    keep_address(window.base, pages, use);
}

std::byte* open_plain(std::size_t bytes)
{
    void* base = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

void close_plain(std::byte* base, std::size_t bytes) { munmap(base, whole_pages(bytes)); }

void forbid_plain(std::byte* base, std::size_t bytes)
{
    if (mprotect(base, whole_pages(bytes), PROT_NONE) != 0) give_up("memory cannot be protected");
}

}  // namespace hip_sim
