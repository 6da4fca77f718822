// SPDX-License-Identifier: BSD-3-Clause
// Functions that allocate, register and free memory. A call that gives memory back waits for all
// streams first, as the real runtime does. So no copy ever loses its memory.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "calls.hpp"
#include "hip_sim.h"
#include "ipc.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "window.hpp"

using namespace hip_sim;

namespace {

void finish_copies() { (void)wait_for(outstanding_on(-1)); }

Use use_of(Kind kind) { return kind == Kind::pool ? Use::pool : Use::allocation; }

hipError_t allocate_device(void** memory, std::size_t bytes, Kind kind)
{
    if (memory == nullptr) return hipErrorInvalidValue;
    *memory = nullptr;
    if (bytes == 0) return hipSuccess;

    Block block{.kind = kind};
    block.bytes = bytes;
    block.device = current_device();
    block.id = next_id();
    block.fd = make_file(block.id, whole_pages(bytes));
    if (block.fd < 0) return hipErrorOutOfMemory;
    Window window;
    if (!open_window(block.fd, bytes, use_of(kind), window)) {
        close(block.fd);
        return hipErrorOutOfMemory;
    }
    block.base = window.base;
    block.alias = window.alias;
    add(block);
    *memory = block.base;
    return hipSuccess;
}

// For managed and pinned memory.
hipError_t allocate_plain(void** memory, std::size_t bytes, Kind kind, unsigned flags)
{
    if (memory == nullptr) return hipErrorInvalidValue;
    *memory = nullptr;
    if (bytes == 0) return hipSuccess;

    Block block{.kind = kind};
    block.bytes = bytes;
    block.base = block.alias = open_plain(bytes);
    if (block.base == nullptr) return hipErrorOutOfMemory;
    block.device = current_device();
    block.flags = flags;
    block.id = next_id();
    add(block);
    *memory = block.base;
    return hipSuccess;
}

void give_back_device(const Block& block)
{
    close_window({block.base, block.alias}, block.bytes, use_of(block.kind));
    close(block.fd);
}

hipError_t release(void* memory)
{
    if (memory == nullptr) return hipSuccess;
    finish_copies();
    for (const Kind kind : {Kind::device, Kind::pool}) {
        if (const auto block = remove(memory, kind)) {
            give_back_device(*block);
            return hipSuccess;
        }
    }
    if (const auto block = remove(memory, Kind::managed)) {
        close_plain(block->base, block->bytes);
        return hipSuccess;
    }
    return hipErrorInvalidValue;
}

hipError_t release_pinned(void* memory)
{
    if (memory == nullptr) return hipSuccess;
    finish_copies();
    const auto block = remove(memory, Kind::pinned);
    if (!block) return hipErrorInvalidValue;
    close_plain(block->base, block->bytes);
    return hipSuccess;
}

hipError_t release_in_order(void* memory, hipStream_t stream)
{
    if (memory == nullptr || !is_stream(stream)) return hipErrorInvalidValue;
    const auto block = remove(memory, Kind::pool);
    if (!block) return hipErrorInvalidValue;
    const auto give_back = [block = *block](Random&) {
        give_back_device(block);
        return true;
    };
    MarkRef mark;
    (void)enqueue(stream, {give_back, {}, true}, mark);
    return hipSuccess;
}

bool is_there(void* memory, std::size_t bytes)
{
    const auto page = whole_pages(1);
    const auto into_page = reinterpret_cast<std::uintptr_t>(memory) % page;
    std::vector<unsigned char> pages(whole_pages(bytes + into_page) / page);
    return mincore(static_cast<std::byte*>(memory) - into_page, bytes + into_page, pages.data()) ==
           0;
}

hipError_t enter_host_memory(void* memory, std::size_t bytes, unsigned flags)
{
    constexpr unsigned known = hipHostRegisterPortable | hipHostRegisterMapped;
    if ((flags & ~known) != 0) give_up("hipHostRegister with flags 0x%x is not simulated", flags);
    if (memory == nullptr || bytes == 0 || !is_there(memory, bytes)) return hipErrorInvalidValue;
    if (overlaps(memory, bytes)) return hipErrorHostMemoryAlreadyRegistered;

    Block block{.kind = Kind::registered};
    block.base = block.alias = static_cast<std::byte*>(memory);
    block.bytes = bytes;
    block.device = current_device();
    block.flags = flags;
    block.id = next_id();
    add(block);
    return hipSuccess;
}

}  // namespace

void hip_sim_end_pinned()
{
    finish_copies();
    for (const Block& block : blocks_of(Kind::pinned, current_device()))
        forbid_plain(block.base, block.bytes);
}

void* hip_sim_foreign(std::size_t bytes)
{
    void* memory = nullptr;
    return allocate_device(&memory, bytes, Kind::foreign) == hipSuccess ? memory : nullptr;
}

hipError_t hipMalloc(void** memory, std::size_t bytes)
{
    return counted(forbidden_by_capture, no_memory,
                   [&] { return allocate_device(memory, bytes, Kind::device); });
}

#ifndef hipDeviceMallocUncached  // HIP 5.2
#define hipDeviceMallocUncached hipDeviceMallocFinegrained
#endif

hipError_t hipExtMallocWithFlags(void** memory, std::size_t bytes, unsigned flags)
{
    return counted(forbidden_by_capture, no_memory, [&] {
        if (flags != hipDeviceMallocFinegrained && flags != hipDeviceMallocUncached)
            give_up("hipExtMallocWithFlags with flags 0x%x is not simulated", flags);
        return allocate_device(memory, bytes, Kind::device);
    });
}

// The memory can be used at once, which is more than HIP promises.
hipError_t hipMallocAsync(void** memory, std::size_t bytes, hipStream_t stream)
{
    return counted(no_memory, [&] {
        if (!is_stream(stream)) return hipErrorInvalidHandle;
        return allocate_device(memory, bytes, Kind::pool);
    });
}

hipError_t hipMallocManaged(void** memory, std::size_t bytes, unsigned flags)
{
    return counted(forbidden_by_capture, no_memory, [&] {
        if (flags != hipMemAttachGlobal)
            give_up("hipMallocManaged with flags 0x%x is not simulated", flags);
        return allocate_plain(memory, bytes, Kind::managed, flags);
    });
}

hipError_t hipHostMalloc(void** memory, std::size_t bytes, unsigned flags)
{
    return counted(forbidden_by_capture, no_memory, [&] {
        constexpr unsigned known = hipHostMallocPortable | hipHostMallocMapped |
                                   hipHostMallocNumaUser | hipHostMallocCoherent |
                                   hipHostMallocNonCoherent;
        if ((flags & ~known) != 0) give_up("hipHostMalloc with flags 0x%x is not simulated", flags);
        return allocate_plain(memory, bytes, Kind::pinned, flags);
    });
}

hipError_t hipFree(void* memory)
{
    return uncounted(forbidden_by_capture, [&] { return release(memory); });
}

hipError_t hipFreeAsync(void* memory, hipStream_t stream)
{
    return uncounted([&] { return release_in_order(memory, stream); });
}

hipError_t hipHostFree(void* memory)
{
    return uncounted(forbidden_by_capture, [&] { return release_pinned(memory); });
}

hipError_t hipHostRegister(void* memory, std::size_t bytes, unsigned flags)
{
    return counted(forbidden_by_capture, no_memory,
                   [&] { return enter_host_memory(memory, bytes, flags); });
}

hipError_t hipHostUnregister(void* memory)
{
    return uncounted(forbidden_by_capture, [&] {
        finish_copies();
        const bool was_there = remove(memory, Kind::registered).has_value();
        return was_there ? hipSuccess : hipErrorHostMemoryNotRegistered;
    });
}
