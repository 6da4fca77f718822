// SPDX-License-Identifier: BSD-3-Clause
#include "ipc.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "calls.hpp"
#include "foreign.hpp"
#include "memory.hpp"
#include "stream.hpp"
#include "window.hpp"

namespace hip_sim {

namespace {

// The beginning of a handle's 64 bytes. The last bytes are not written, as by the real runtimes.
struct Ticket {
    char magic[8];
    std::int32_t owner;
    std::int32_t fd;
    std::uint64_t bytes;
    std::uint64_t id;
};
static_assert(sizeof(Ticket) < sizeof(hipIpcMemHandle_t));
constexpr char magic[8] = "hip_sim";

std::string file_name(int owner, std::uint64_t id)
{
    return "hip_sim." + std::to_string(owner) + "." + std::to_string(id);
}

hipError_t export_memory(hipIpcMemHandle_t* handle, void* memory)
{
    if (handle == nullptr) return hipErrorInvalidValue;
    if (passes_for_foreign(memory)) give_up("hipIpcGetMemHandle of memory that is not HIP's");
    const auto block = find(memory);
    if (!block || block->kind != Kind::device) return hipErrorInvalidValue;
    // The other side would get the base in some releases and this address in others.
    if (block->base != memory) give_up("hipIpcGetMemHandle not at the base of an allocation");
    Ticket ticket{};
    std::memcpy(ticket.magic, magic, sizeof magic);
    ticket.owner = getpid();
    ticket.fd = block->fd;
    ticket.bytes = block->bytes;
    ticket.id = block->id;
    std::memcpy(handle, &ticket, sizeof ticket);
    return hipSuccess;
}

// -1: the memory is gone. The owner's file descriptor may be that of another file by now.
int open_file(const Ticket& ticket)
{
    const auto path = "/proc/" + std::to_string(ticket.owner) + "/fd/" + std::to_string(ticket.fd);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return -1;
    char name[128] = "";
    const auto own_path = "/proc/self/fd/" + std::to_string(fd);
    const auto length = readlink(own_path.c_str(), name, sizeof name - 1);
    const auto wanted = "/memfd:" + file_name(ticket.owner, ticket.id) + " (deleted)";
    if (length > 0 && wanted == name) return fd;
    close(fd);
    return -1;
}

hipError_t open_memory(void** memory, const hipIpcMemHandle_t& handle, unsigned flags)
{
    if (flags != hipIpcMemLazyEnablePeerAccess)
        give_up("hipIpcOpenMemHandle with flags 0x%x is not simulated", flags);
    if (memory == nullptr) return hipErrorInvalidValue;
    Ticket ticket;
    std::memcpy(&ticket, &handle, sizeof ticket);
    if (std::memcmp(ticket.magic, magic, sizeof magic) != 0) return hipErrorInvalidValue;
    if (ticket.owner == getpid()) return hipErrorInvalidContext;
    if (is_mapped(ticket.owner, ticket.id)) return hipErrorInvalidValue;

    const int fd = open_file(ticket);
    if (fd < 0) return hipErrorInvalidDevicePointer;
    Window window;
    const bool is_open = open_window(fd, ticket.bytes, Use::mapping, window);
    close(fd);
    if (!is_open) return hipErrorMapFailed;

    Block block{.kind = Kind::mapped};
    block.base = window.base;
    block.alias = window.alias;
    block.bytes = ticket.bytes;
    block.device = current_device();
    block.id = next_id();
    block.owner = ticket.owner;
    block.owner_id = ticket.id;
    add(block);
    *memory = block.base;
    return hipSuccess;
}

hipError_t close_memory(void* memory)
{
    (void)wait_for(outstanding_on(-1));
    const auto block = remove(memory, Kind::mapped);
    if (!block) return hipErrorInvalidValue;
    close_window({block->base, block->alias}, block->bytes, Use::mapping);
    return hipSuccess;
}

}  // namespace

int make_file(std::uint64_t id, std::size_t bytes)
{
    const int fd = memfd_create(file_name(getpid(), id).c_str(), MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
    close(fd);
    return -1;
}

}  // namespace hip_sim

using namespace hip_sim;

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* memory)
{
    return counted(broken, [&] { return export_memory(handle, memory); });
}

hipError_t hipIpcOpenMemHandle(void** memory, hipIpcMemHandle_t handle, unsigned flags)
{
    return counted(forbidden_by_capture, broken,
                   [&] { return open_memory(memory, handle, flags); });
}

hipError_t hipIpcCloseMemHandle(void* memory)
{
    return uncounted(forbidden_by_capture, [&] { return close_memory(memory); });
}
