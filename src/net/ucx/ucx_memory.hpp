// SPDX-License-Identifier: BSD-3-Clause
// Registered memory and remote keys of UCX, each released once.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <span>
#include <vector>

namespace hier {

class UcxMemory {
public:
    UcxMemory() = default;
    UcxMemory(UcxMemory&& other) noexcept { *this = std::move(other); }
    UcxMemory& operator=(UcxMemory&& other) noexcept;
    UcxMemory(const UcxMemory&) = delete;
    UcxMemory& operator=(const UcxMemory&) = delete;
    ~UcxMemory() { reset(); }

    // Registers `bytes` bytes of this type of memory at `base`. UCX has a cache: it is cheap for memory
    // that is known already.
    ucs_status_t map(ucp_context_h context, void* base, std::size_t bytes, ucs_memory_type_t type);
    // The key with which a peer may write there.
    ucs_status_t pack_key(std::vector<std::byte>& out) const;
    void reset();

private:
    ucp_context_h context_ = nullptr;
    ucp_mem_h handle_ = nullptr;
};

class UcxRemoteKey {
public:
    UcxRemoteKey() = default;
    UcxRemoteKey(const UcxRemoteKey&) = delete;
    UcxRemoteKey& operator=(const UcxRemoteKey&) = delete;
    ~UcxRemoteKey() { reset(); }

    // UCX is not told how long a key is. Whatever the bytes are, UCX reads no memory behind them.
    ucs_status_t unpack(ucp_ep_h endpoint, std::span<const std::byte> packed);
    ucp_rkey_h get() const { return key_; }
    void reset();

private:
    ucp_rkey_h key_ = nullptr;
};

// libibverbs takes the pages of registered memory from children of fork(), with everything else that lies
// on these pages. This gives them back, where the kernel needs no such protection any more.
void give_to_children(const void* base, std::size_t bytes);

}  // namespace hier
