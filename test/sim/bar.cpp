// SPDX-License-Identifier: BSD-3-Clause
// The first store into a page is a fault, which keeps the page as it was. The first store into the
// register is one too. It moves the bytes that differ.
#include "bar.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "calls.hpp"
#include "held.hpp"
#include "hip_sim.h"
#include "options.hpp"

namespace hip_sim {

namespace {

std::size_t page_bytes()
{
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return page;
}

struct Region {
    std::byte* base;
    std::byte* alias;
    std::byte* before;  // the pages as they were before the CPU stored
    std::size_t pages;  // bytes
    int device;
    std::vector<char> is_dirty;  // by page

    std::size_t page_of(const void* at) const
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(at) - base) / page_bytes();
    }
    bool has(const void* at) const { return at >= base && at < base + pages; }
};

struct Bar {
    std::vector<Region> regions;
    std::byte* registers = nullptr;  // a page of each device
    struct sigaction previous {};
};

// The handler takes it.
std::atomic_flag lock = ATOMIC_FLAG_INIT;
std::atomic<int> dirty_pages{0};
std::atomic<std::uint64_t> flushes{0};
constexpr std::size_t max_devices = 16;

Bar& bar()
{
    static Bar& made = *new Bar;
    return made;
}

void protect(std::byte* page, int access)
{
    if (mprotect(page, page_bytes(), access) != 0) give_up("a page cannot be protected");
}

std::byte* register_page(int device)
{
    return bar().registers + static_cast<std::size_t>(device) * page_bytes();
}

template <class Page> void for_dirty(Region& region, Page&& each)
{
    for (std::size_t p = 0; p < region.is_dirty.size(); p++) {
        if (region.is_dirty[p] != 0) each(p, p * page_bytes());
    }
}

void begin_stores(Region& region, const void* address)
{
    const std::size_t page = region.page_of(address), at = page * page_bytes();
    if (region.is_dirty[page] != 0) return;  // another thread was quicker
    std::memcpy(region.before + at, region.base + at, page_bytes());
    region.is_dirty[page] = 1;
    dirty_pages++;
    protect(region.base + at, PROT_READ | PROT_WRITE);
    protect(register_page(region.device), PROT_READ);
}

void flush(int device)
{
    for (Region& region : bar().regions) {
        if (region.device != device) continue;
        for_dirty(region, [&](std::size_t page, std::size_t at) {
            protect(region.base + at, PROT_READ);  // other threads wait
            for (std::size_t i = at; i < at + page_bytes(); i++)
                if (region.base[i] != region.before[i]) region.alias[i] = region.base[i];
            madvise(region.base + at, page_bytes(), MADV_DONTNEED);
            region.is_dirty[page] = 0;
            dirty_pages--;
        });
    }
    protect(register_page(device), PROT_READ | PROT_WRITE);
    flushes++;
}

void handle(int, siginfo_t* info, void*)
{
    const int error = errno;
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    const Held held(lock);
    Bar& all = bar();
    if (at >= all.registers && at < all.registers + max_devices * page_bytes()) {
        flush(static_cast<int>(static_cast<std::size_t>(at - all.registers) / page_bytes()));
    } else {
        Region* hit = nullptr;
        for (Region& region : all.regions) hit = region.has(at) ? &region : hit;
        if (hit != nullptr)
            begin_stores(*hit, at);
        else
            sigaction(SIGSEGV, &all.previous, nullptr);  // the access faults again
    }
    errno = error;
}

// Libraries may have put a handler of their own there since.
void install()
{
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) return;
    bar().previous = now;
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &ours, nullptr);
}

std::byte* pages_of(std::size_t bytes)
{
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) give_up("no memory for the BAR");
    return static_cast<std::byte*>(at);
}

}  // namespace

void open_bar(std::byte* base, std::byte* alias, std::size_t pages)
{
    Region region{base, alias, pages_of(pages), pages, current_device(), {}};
    region.is_dirty.resize(pages / page_bytes());
    (void)flush_register(0);
    const Held held(lock);
    install();
    bar().regions.push_back(std::move(region));
}

void close_bar(std::byte* base)
{
    const Held held(lock);
    std::erase_if(bar().regions, [&](Region& region) {
        if (region.base != base) return false;
        for_dirty(region, [](std::size_t, std::size_t) { dirty_pages--; });
        munmap(region.before, region.pages);
        return true;
    });
}

std::uint32_t* flush_register(int device)
{
    const Held held(lock);
    if (bar().registers == nullptr) bar().registers = pages_of(max_devices * page_bytes());
    return reinterpret_cast<std::uint32_t*>(register_page(device));
}

void refresh_bar()
{
    if (dirty_pages == 0) return;
    const Held held(lock);
    for (Region& region : bar().regions) {
        for_dirty(region, [&](std::size_t, std::size_t at) {
            for (std::size_t i = at; i < at + page_bytes(); i++) {
                if (region.base[i] != region.before[i] || region.alias[i] == region.before[i])
                    continue;
                region.base[i] = region.before[i] = region.alias[i];
            }
        });
    }
}

}  // namespace hip_sim

std::uint64_t hip_sim_flushes() { return hip_sim::flushes; }
