// SPDX-License-Identifier: BSD-3-Clause
// GDRCopy (libgdrapi.so.2), by its binary interface: mappings of simulated device memory at another
// address. What the CPU stores gets there when the CPU next loads from the mapping. It aborts where the
// real library or the hardware would do anything: at an unknown handle, outside of a mapping, at memory
// that was freed, in two threads.
//
// The words gdrcopy, pins, room and segments of CUDA_SIM_REFUSES make calls fail (contexts.hpp).
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "contexts.hpp"
#include "gdr_sim.h"
#include "test/sim/held.hpp"
#include "test/sim/memory.hpp"
#include "test/sim/window.hpp"

#pragma GCC diagnostic ignored "-Wmissing-declarations"  // GDRCopy's header is not there

namespace {

using hip_sim::Block;

constexpr std::size_t gpu_page = 64 << 10, page = 4 << 10;

struct Store {
    std::size_t at;
    std::vector<std::byte> bytes;
};

struct Pin {
    std::byte* address;
    std::size_t bytes;
    std::vector<Block> blocks;    // that lie there, at least in part
    std::byte* mapped = nullptr;  // the CPU may load from it
    std::byte* hidden = nullptr;  // the same for this file
    std::vector<Store> stores;    // that the device does not see
};

struct Handle {
    unsigned long value;
};

std::map<unsigned long, Pin> pins;
std::atomic<std::uint64_t> asked, loads, stores, flushes;
struct sigaction previous {};
char instance;

// The handler takes it.
std::atomic_flag lock = ATOMIC_FLAG_INIT;

// No two of the library's own calls may run at the same time, but for copies.
std::atomic<bool> is_busy{false};
class Alone {
public:
    explicit Alone(const void* caller)
    {
        if (caller != &instance) cuda_sim::give_up("a GDRCopy that is not open");
        if (is_busy.exchange(true)) cuda_sim::give_up("GDRCopy in two threads");
        usleep(20);  // in which another thread is noticed
    }
    ~Alone() { is_busy = false; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
};

Pin& pin_of(Handle handle)
{
    const auto found = pins.find(handle.value);
    if (found == pins.end()) cuda_sim::give_up("a handle of memory that is not pinned");
    return found->second;
}

bool is_pinnable(const Block& block)
{
    if (block.kind == hip_sim::Kind::segment) return !cuda_sim::refuses("segments");
    return block.kind == hip_sim::Kind::device;
}

// false: a page of the GPU has no memory.
bool find_blocks(Pin& pin)
{
    for (std::size_t at = 0; at < pin.bytes; at += gpu_page) {
        bool has_memory = false;
        for (std::size_t i = at; i < at + gpu_page; i += page) {
            const auto block = hip_sim::find(pin.address + i);
            if (!block || !is_pinnable(*block)) continue;
            has_memory = true;
            if (pin.blocks.empty() || pin.blocks.back().id != block->id)
                pin.blocks.push_back(*block);
        }
        if (!has_memory) return false;
    }
    return true;
}

// Calls each(offset in the pinned memory, bytes, offset in the block, block).
template <class Each> void for_parts(const Pin& pin, Each&& each)
{
    for (const Block& block : pin.blocks) {
        const std::byte* const from = std::max<const std::byte*>(block.base, pin.address);
        const std::byte* const end = std::min<const std::byte*>(
            block.base + hip_sim::whole_pages(block.bytes), pin.address + pin.bytes);
        each(from - pin.address, static_cast<std::size_t>(end - from), from - block.base, block);
    }
}

std::byte* map_pages(const Pin& pin, int access)
{
    void* const base =
        mmap(nullptr, pin.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) cuda_sim::give_up("such a large mapping");
    auto* const first = static_cast<std::byte*>(base);
    for_parts(pin, [&](std::ptrdiff_t at, std::size_t bytes, off_t in_block, const Block& block) {
        if (mmap(first + at, bytes, access, MAP_SHARED | MAP_FIXED, block.fd, in_block) ==
            MAP_FAILED)
            cuda_sim::give_up("this mapping");
    });
    return first;
}

// Also refuses memory that was freed, or was made again at the same address.
std::size_t checked(const Pin& pin, const void* mapped, std::size_t bytes)
{
    const auto* const at = static_cast<const std::byte*>(mapped);
    if (pin.mapped == nullptr || at < pin.mapped || at + bytes > pin.mapped + pin.bytes)
        cuda_sim::give_up("a copy outside of a mapping");
    const auto offset = static_cast<std::size_t>(at - pin.mapped);
    const std::byte* const address = pin.address + offset;
    const auto now = hip_sim::find(address);
    for (const Block& block : pin.blocks)
        if (now && now->id == block.id && address + bytes <= block.base + block.bytes)
            return offset;
    cuda_sim::give_up("a copy to memory that is not mapped, or is gone");
}

void protect(const Pin& pin, int access)
{
    for_parts(pin, [&](std::ptrdiff_t at, std::size_t bytes, off_t, const Block&) {
        if (mprotect(pin.mapped + at, bytes, access) != 0) cuda_sim::give_up("this protection");
    });
}

void show_stores(Pin& pin)
{
    if (pin.stores.empty()) return;
    for (const Store& store : pin.stores)
        std::memcpy(pin.hidden + store.at, store.bytes.data(), store.bytes.size());
    pin.stores.clear();
    protect(pin, PROT_READ);
}

void handle_fault(int, siginfo_t* info, void*)
{
    const int error = errno;
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    const hip_sim::Held held(lock);
    Pin* hit = nullptr;
    for (auto& [handle, pin] : pins)
        if (at >= pin.mapped && at < pin.mapped + pin.bytes && !pin.stores.empty()) hit = &pin;
    if (hit == nullptr) {
        sigaction(SIGSEGV, &previous, nullptr);  // the access faults again
    } else {
        show_stores(*hit);
        flushes++;
    }
    errno = error;
}

// Libraries may have put a handler of their own there since.
void install()
{
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_fault) return;
    previous = now;
    struct sigaction ours {};
    ours.sa_sigaction = handle_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &ours, nullptr);
}

__attribute__((destructor)) void tell_leaks()
{
    if (!pins.empty()) std::fprintf(stderr, "simulated GDRCopy: %zu pins are left\n", pins.size());
}

}  // namespace

extern "C" {

void* gdr_open() { return cuda_sim::refuses("gdrcopy") ? nullptr : &instance; }

int gdr_pin_buffer(void* caller, unsigned long address, std::size_t bytes, std::uint64_t token,
                   std::uint32_t space, Handle* handle)
{
    const Alone alone(caller);
    if (address % gpu_page != 0 || bytes == 0 || bytes % gpu_page != 0)
        cuda_sim::give_up("pinning parts of pages");
    asked++;
    if (cuda_sim::refuses("pins") || token != 0 || space != 0) return EINVAL;
    constexpr std::size_t most_shown = 4;  // of a device that shows little of its memory
    if (cuda_sim::refuses("room") && pins.size() >= most_shown) return ENOMEM;
    Pin pin{reinterpret_cast<std::byte*>(address), bytes, {}, nullptr, nullptr, {}};
    if (!find_blocks(pin)) return EINVAL;
    const hip_sim::Held held(lock);
    *handle = {asked};
    pins[handle->value] = std::move(pin);
    return 0;
}

int gdr_unpin_buffer(void* caller, Handle handle)
{
    const Alone alone(caller);
    const hip_sim::Held held(lock);
    if (pin_of(handle).mapped != nullptr) cuda_sim::give_up("unpinning mapped memory");
    pins.erase(handle.value);
    return 0;
}

int gdr_map(void* caller, Handle handle, void** mapped, std::size_t bytes)
{
    const Alone alone(caller);
    const hip_sim::Held held(lock);
    Pin& pin = pin_of(handle);
    if (pin.mapped != nullptr) return EAGAIN;
    if (bytes != pin.bytes) cuda_sim::give_up("mapping a part of pinned memory");
    install();
    pin.mapped = map_pages(pin, PROT_READ);
    pin.hidden = map_pages(pin, PROT_READ | PROT_WRITE);
    *mapped = pin.mapped;
    return 0;
}

int gdr_unmap(void* caller, Handle handle, void* mapped, std::size_t bytes)
{
    const Alone alone(caller);
    const hip_sim::Held held(lock);
    Pin& pin = pin_of(handle);
    if (mapped == nullptr || mapped != pin.mapped || bytes != pin.bytes)
        cuda_sim::give_up("unmapping another mapping");
    munmap(pin.mapped, pin.bytes);
    munmap(pin.hidden, pin.bytes);
    pin.mapped = pin.hidden = nullptr;
    pin.stores.clear();
    return 0;
}

int gdr_copy_to_mapping(Handle handle, void* to, const void* from, std::size_t bytes)
{
    const auto* const first = static_cast<const std::byte*>(from);
    Store store{0, {first, first + bytes}};
    stores++;
    const hip_sim::Held held(lock);
    Pin& pin = pin_of(handle);
    store.at = checked(pin, to, bytes);
    install();
    if (pin.stores.empty()) protect(pin, PROT_NONE);
    pin.stores.push_back(std::move(store));
    return 0;
}

int gdr_copy_from_mapping(Handle handle, void* to, const void* from, std::size_t bytes)
{
    loads++;
    std::vector<std::byte> read(bytes);
    {
        const hip_sim::Held held(lock);
        Pin& pin = pin_of(handle);
        const std::size_t at = checked(pin, from, bytes);
        show_stores(pin);
        std::memcpy(read.data(), pin.hidden + at, bytes);
    }
    std::memcpy(to, read.data(), bytes);
    return 0;
}

}  // extern "C"

std::uint64_t gdr_sim_count(const char* what)
{
    const std::string_view name = what;
    const hip_sim::Held held(lock);
    if (name == "pins") return pins.size();
    if (name == "mappings")
        return static_cast<std::uint64_t>(
            std::ranges::count_if(pins, [](const auto& p) { return p.second.mapped != nullptr; }));
    if (name == "asked") return asked;
    if (name == "loads") return loads;
    if (name == "stores") return stores;
    if (name == "flushes") return flushes;
    cuda_sim::give_up("this count of GDRCopy");
}
