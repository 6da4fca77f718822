// SPDX-License-Identifier: BSD-3-Clause
// Device memory behind a NIC. Until a flush the bytes of a put may be in the NIC or on the bus, and
// not in the memory. Here a shadow holds them until then. Only the wrappers of UCX use this file.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hier::test {

// Does this memory have a shadow? A word has none: see FlushProbe.
bool is_shadowed(const ucp_mem_map_params_t& params);
// The puts go there instead. The shadow stays from one mapping to the next until forget_shadow(),
// as UCX keeps registrations.
void* shadow_of(const ucp_mem_map_params_t& params);
// The byte of a packed key of UCX that tells whether the key has a trailer.
inline constexpr std::size_t type_in_keys = 8;
// The trailer that follows UCX's own bytes in a key of memory with a shadow; empty if the memory
// has none.
std::vector<std::byte> trailer_of(ucp_mem_h memory);
void remember(ucp_mem_h memory, const void* base);

// UCX's own bytes of a key that has a trailer, as a key of host memory, because the shadow is in
// the host. Empty if the key has no trailer.
std::vector<std::byte> without_trailer(const void* packed);
// From take_key() to drop_key(), puts and gets by this key go to the displaced() address.
void take_key(ucp_rkey_h key, const void* packed);
void drop_key(ucp_rkey_h key);
std::uint64_t displaced(ucp_rkey_h key, std::uint64_t address);

// Call this when UCX has noticed that the memory was freed.
void forget_shadow(const void* base);

// A read flushes all bytes that have landed when it starts. They become visible when it is done.
using Landed = std::vector<std::pair<std::byte*, std::byte>>;
Landed landed_so_far();
void make_visible(const Landed& landed);

}  // namespace hier::test
