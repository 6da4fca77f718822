// SPDX-License-Identifier: BSD-3-Clause
// Device memory as a NIC sees it: what a put writes there is in the NIC's and the bus's hands, not
// in the memory, until something flushes it. Of wrap_ucx.cpp and wrap_ucx_puts.cpp.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hier::test {

// Is this memory that has such a shadow? (A word has none: see FlushProbe.)
bool is_shadowed(const ucp_mem_map_params_t& params);
// Where the puts go instead: kept from one mapping to the next, as UCX keeps registrations, until
// forget_shadow().
void* shadow_of(const ucp_mem_map_params_t& params);
// In UCX's packed keys: tells here which ones have a trailer.
inline constexpr std::size_t type_in_keys = 8;
// What follows UCX's own bytes in a key of the memory whose shadow this handle is of; empty: of
// other memory.
std::vector<std::byte> trailer_of(ucp_mem_h memory);
void remember(ucp_mem_h memory, const void* base);

// UCX's own bytes of a key that has a trailer: of memory of the host, which the shadow is; empty:
// it has none.
std::vector<std::byte> without_trailer(const void* packed);
// A key that has been unpacked; puts and gets by it go elsewhere.
void take_key(ucp_rkey_h key, const void* packed);
void drop_key(ucp_rkey_h key);
std::uint64_t displaced(ucp_rkey_h key, std::uint64_t address);

// UCX has seen that this memory is freed.
void forget_shadow(const void* base);

// What a read takes with it: all that has landed by now, made visible when the read is done.
using Landed = std::vector<std::pair<std::byte*, std::byte>>;
Landed landed_so_far();
void make_visible(const Landed& landed);

}  // namespace hier::test
