// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_memory.hpp"

#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "gpu/runtime.hpp"

namespace hier {

UcxMemory& UcxMemory::operator=(UcxMemory&& other) noexcept
{
    std::swap(context_, other.context_);
    std::swap(handle_, other.handle_);
    return *this;
}

ucs_status_t UcxMemory::map(ucp_context_h context, void* base, std::size_t bytes,
                            ucs_memory_type_t type)
{
    reset();
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address = base;
    params.length = bytes;
    params.memory_type = type;
    // Where a thread has a CUDA context, a UCX that knows CUDA pins the host's memory each time that it
    // registers it (uct_cuda_copy_mem_reg, up to 1.22 at least), and has no cache for that.
    const gpu::ContextPause pause(type == UCS_MEMORY_TYPE_HOST);
    const ucs_status_t status = ucp_mem_map(context, &params, &handle_);
    if (status == UCS_OK) {
        context_ = context;
    } else {
        handle_ = nullptr;
    }
    return status;
}

ucs_status_t UcxMemory::pack_key(std::vector<std::byte>& out) const
{
    void* packed = nullptr;
    std::size_t bytes = 0;
    const ucs_status_t status = ucp_rkey_pack(context_, handle_, &packed, &bytes);
    if (status != UCS_OK) return status;
    out.resize(bytes);
    std::memcpy(out.data(), packed, bytes);
    ucp_rkey_buffer_release(packed);
    return UCS_OK;
}

void UcxMemory::reset()
{
    if (handle_ != nullptr) ucp_mem_unmap(context_, handle_);
    handle_ = nullptr;
}

namespace {

// From 5.12 on the kernel copies registered pages for a child.
bool copies_on_fork()
{
    utsname name{};
    int major = 0, minor = 0;
    if (uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
    return major > 5 || (major == 5 && minor >= 12);
}

}  // namespace

void give_to_children(const void* base, std::size_t bytes)
{
    static const bool is_safe = copies_on_fork();
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    if (!is_safe) return;
    const auto first = reinterpret_cast<std::uintptr_t>(base) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(base) + bytes + page - 1) / page * page;
    (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DOFORK);
}

// A key names up to 64 memory domains, with a byte for the length of each part. So UCX reads no more
// than this, whatever the bytes are.
ucs_status_t UcxRemoteKey::unpack(ucp_ep_h endpoint, std::span<const std::byte> packed)
{
    reset();
    constexpr std::size_t domains = 64, max_part = 256, max_head = 64;
    std::array<std::byte, max_head + domains * max_part> padded{};
    if (packed.size() > padded.size()) return UCS_ERR_INVALID_PARAM;
    std::copy(packed.begin(), packed.end(), padded.begin());
    const ucs_status_t status = ucp_ep_rkey_unpack(endpoint, padded.data(), &key_);
    if (status != UCS_OK) key_ = nullptr;
    return status;
}

void UcxRemoteKey::reset()
{
    if (key_ != nullptr) ucp_rkey_destroy(key_);
    key_ = nullptr;
}

}  // namespace hier
