// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management as from HIP 7.14 on.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "calls.hpp"
#include "ipc.hpp"
#include "memory.hpp"
#include "virtual.hpp"
#include "window.hpp"

namespace hip_sim {

namespace {

struct Physical {
    int fd = -1;
    std::size_t bytes = 0;
    int device = 0;
    bool may_be_exported = false;
    int users = 1;  // handles and mappings
};

struct Reservation {
    std::byte* alias = nullptr;
    std::size_t bytes = 0;
};

struct Registry {
    std::mutex mutex;
    std::set<Physical*> handles;
    std::map<std::byte*, Reservation> reservations;
    std::map<std::byte*, Physical*> mapped;
};

Registry& registry()
{
    static Registry& made = *new Registry;
    return made;
}

hipMemGenericAllocationHandle_t handle_of(Physical* memory)
{
    return reinterpret_cast<hipMemGenericAllocationHandle_t>(memory);
}

// The caller holds the lock, here and in the functions below.
Physical* memory_of(hipMemGenericAllocationHandle_t handle)
{
    auto* const memory = reinterpret_cast<Physical*>(handle);
    return registry().handles.contains(memory) ? memory : nullptr;
}

void give_up_one(Physical* memory)
{
    if (--memory->users > 0) return;
    close(memory->fd);
    registry().handles.erase(memory);
    delete memory;
}

bool put_at(std::byte* at, std::size_t bytes, int access, int fd)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    return mmap(at, bytes, access, flags | MAP_FIXED, fd, 0) != MAP_FAILED;
}

// nullptr: the bytes do not all lie in one reservation.
std::byte* alias_of(std::byte* at, std::size_t bytes)
{
    auto& all = registry().reservations;
    auto r = all.upper_bound(at);
    if (r == all.begin()) return nullptr;
    --r;
    const auto offset = static_cast<std::size_t>(at - r->first);
    const bool is_inside = offset < r->second.bytes && bytes <= r->second.bytes - offset;
    return is_inside ? r->second.alias + offset : nullptr;
}

// Calls do_segment(base, memory) for each segment. False: the bytes are not a number of whole
// segments.
template <class Segment> bool for_segments(std::byte* at, std::size_t bytes, Segment&& do_segment)
{
    std::byte* next = at;
    auto& mapped = registry().mapped;
    for (auto m = mapped.find(at); m != mapped.end() && m->first == next && next < at + bytes; ++m)
        next += m->second->bytes;
    if (next != at + bytes) return false;
    for (next = at; next < at + bytes;) {
        Physical* const memory = mapped.at(next);
        do_segment(next, memory);
        next += memory->bytes;
    }
    return true;
}

}  // namespace

std::mutex& virtual_mutex() { return registry().mutex; }

hipError_t create(hipMemGenericAllocationHandle_t* handle, std::size_t bytes,
                  const hipMemAllocationProp* wanted)
{
    if (handle == nullptr || wanted == nullptr || bytes == 0 || bytes % granularity != 0 ||
        wanted->type != hipMemAllocationTypePinned ||
        wanted->location.type != hipMemLocationTypeDevice || wanted->location.id < 0 ||
        wanted->location.id >= options().devices)
        return hipErrorInvalidValue;
    const int fd = make_file(next_id(), bytes);
    if (fd < 0) return hipErrorOutOfMemory;
    const bool may_be_exported = wanted->requestedHandleType == hipMemHandleTypePosixFileDescriptor;
    auto* const memory = new Physical{fd, bytes, wanted->location.id, may_be_exported};
    registry().handles.insert(memory);
    *handle = handle_of(memory);
    return hipSuccess;
}

hipError_t share(void* out, hipMemGenericAllocationHandle_t handle, hipMemAllocationHandleType type)
{
    const Physical* const memory = memory_of(handle);
    if (out == nullptr || memory == nullptr || !memory->may_be_exported ||
        type != hipMemHandleTypePosixFileDescriptor)
        return hipErrorInvalidValue;
    const int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return hipErrorUnknown;
    *static_cast<int*>(out) = fd;
    return hipSuccess;
}

hipError_t take(hipMemGenericAllocationHandle_t* handle, int shared,
                hipMemAllocationHandleType type)
{
    struct stat about {};
    if (handle == nullptr || type != hipMemHandleTypePosixFileDescriptor ||
        fstat(shared, &about) != 0)
        return hipErrorInvalidValue;
    const int fd = fcntl(shared, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return hipErrorUnknown;
    auto* const memory =
        new Physical{fd, static_cast<std::size_t>(about.st_size), current_device(), false};
    registry().handles.insert(memory);
    *handle = handle_of(memory);
    return hipSuccess;
}

hipError_t map(std::byte* at, std::size_t bytes, hipMemGenericAllocationHandle_t handle)
{
    Physical* const memory = memory_of(handle);
    std::byte* const alias = alias_of(at, bytes);
    if (memory == nullptr || alias == nullptr || bytes != memory->bytes || overlaps(at, bytes))
        return hipErrorInvalidValue;
    if (!put_at(alias, bytes, PROT_READ | PROT_WRITE, memory->fd)) return hipErrorMapFailed;
    memory->users++;
    registry().mapped[at] = memory;
    Block block{.kind = Kind::segment};
    block.base = at;
    block.alias = alias;
    block.bytes = bytes;
    block.device = memory->device;
    block.id = next_id();
    block.fd = memory->fd;
    block.may_be_copied = false;
    add(block);
    return hipSuccess;
}

// Before this call no device reaches the memory.
hipError_t allow(std::byte* at, std::size_t bytes, const hipMemAccessDesc* access,
                 std::size_t count)
{
    if (access == nullptr || count != 1 || access->location.type != hipMemLocationTypeDevice)
        return hipErrorInvalidValue;
    if (access->flags != hipMemAccessFlagsProtReadWrite)
        give_up("hipMemSetAccess with flags %d is not simulated", static_cast<int>(access->flags));
    const int protection = options().hidden ? PROT_NONE : PROT_READ | PROT_WRITE;
    return for_segments(at, bytes,
                        [&](std::byte* base, const Physical* memory) {
                            (void)put_at(base, memory->bytes, protection, memory->fd);
                            Block block = *find(static_cast<const void*>(base));
                            block.may_be_copied = true;
                            add(block);
                        })
               ? hipSuccess
               : hipErrorInvalidValue;
}

hipError_t unmap(std::byte* at, std::size_t bytes)
{
    const auto take_out = [](std::byte* base, Physical* memory) {
        std::byte* const alias = alias_of(base, memory->bytes);
        (void)put_at(base, memory->bytes, PROT_NONE, -1);
        (void)put_at(alias, memory->bytes, PROT_NONE, -1);
        (void)remove(base, Kind::segment);
    };
    std::vector<Physical*> gone;
    const bool is_there = for_segments(at, bytes, [&](std::byte* base, Physical* memory) {
        take_out(base, memory);
        gone.push_back(memory);
    });
    if (!is_there) return hipErrorInvalidValue;
    for (Physical* const memory : gone) {
        registry().mapped.erase(at);
        at += memory->bytes;
        give_up_one(memory);
    }
    return hipSuccess;
}

hipError_t retain(hipMemGenericAllocationHandle_t* handle, const void* address)
{
    const auto block = find(address);
    if (handle == nullptr || !block || block->kind != Kind::segment) return hipErrorInvalidValue;
    Physical* const memory = registry().mapped.at(block->base);
    memory->users++;
    *handle = handle_of(memory);
    return hipSuccess;
}

hipError_t release(hipMemGenericAllocationHandle_t handle)
{
    Physical* const memory = memory_of(handle);
    if (memory == nullptr) return hipErrorInvalidValue;
    give_up_one(memory);
    return hipSuccess;
}

hipError_t reserve(void** base, std::size_t bytes)
{
    std::byte* const seen = static_cast<std::byte*>(reserve_gpu_pages(bytes));
    std::byte* const alias = static_cast<std::byte*>(reserve_gpu_pages(bytes));
    if (seen == nullptr || alias == nullptr) return hipErrorOutOfMemory;
    registry().reservations[seen] = {alias, bytes};
    *base = seen;
    return hipSuccess;
}

hipError_t give_back(void* base, std::size_t bytes)
{
    const auto r = registry().reservations.find(static_cast<std::byte*>(base));
    if (r == registry().reservations.end() || r->second.bytes != bytes || overlaps(base, bytes))
        return hipErrorInvalidValue;
    munmap(r->second.alias, bytes);
    munmap(base, bytes);
    registry().reservations.erase(r);
    return hipSuccess;
}

std::uint64_t live_handles()
{
    const std::lock_guard lock(virtual_mutex());
    return registry().handles.size();
}

std::uint64_t live_reservations()
{
    const std::lock_guard lock(virtual_mutex());
    return registry().reservations.size();
}

}  // namespace hip_sim
