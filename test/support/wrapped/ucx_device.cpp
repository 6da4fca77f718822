// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_device.hpp"

#include <cstring>
#include <list>
#include <map>
#include <utility>

#include "gpu/runtime.hpp"
#include "ucx.hpp"

using namespace hier::test;

namespace {

struct Shadow {
    std::byte* device;
    std::uint64_t id;  // of the allocation that has this shadow
    std::vector<std::byte> bytes;
    std::uint64_t generation;
};

struct Trailer {
    std::uint64_t magic;
    std::uint64_t displacement;
    std::uint64_t generation;  // a key is never given twice
};
constexpr std::uint64_t magic = 0x5ead0beefcafe5edu;

std::list<Shadow> shadows;
std::map<ucp_mem_h, const void*> mapped;
std::map<ucp_rkey_h, std::uint64_t> displacements;

std::uint64_t id_of(const void* address)
{
    hier::Allocation found;
    return hier::failed(hier::gpu::inspect(address, found)) ? 0 : found.id;
}

// The offset of the trailer; 0: there is none.
std::size_t find_trailer(const void* packed, Trailer& trailer)
{
    constexpr std::size_t max_bytes = 64;  // bytes of UCX's own
    const auto* bytes = static_cast<const std::byte*>(packed);
    if (bytes[type_in_keys] != std::byte{UCS_MEMORY_TYPE_ROCM}) return 0;
    for (std::size_t at = type_in_keys + 1; at < max_bytes; at++) {
        std::memcpy(&trailer, bytes + at, sizeof trailer);
        if (trailer.magic == magic) return at;
    }
    return 0;
}

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

namespace hier::test {

bool is_shadowed(const ucp_mem_map_params_t& params)
{
    constexpr std::size_t word = 64;
    return params.length > word && (params.field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) != 0 &&
           params.memory_type == UCS_MEMORY_TYPE_ROCM;
}

void* shadow_of(const ucp_mem_map_params_t& params)
{
    static std::uint64_t generations = 0;
    auto* device = static_cast<std::byte*>(params.address);
    for (Shadow& s : shadows) {
        if (s.device == device && s.bytes.size() == params.length) return s.bytes.data();
    }
    shadows.push_back(
        {device, id_of(device), std::vector<std::byte>(params.length), ++generations});
    return shadows.back().bytes.data();
}

void remember(ucp_mem_h memory, const void* base) { mapped[memory] = base; }

std::vector<std::byte> trailer_of(ucp_mem_h memory)
{
    const auto found = mapped.find(memory);
    if (found == mapped.end()) return {};
    for (const Shadow& s : shadows) {
        if (s.bytes.data() != found->second) continue;
        const Trailer trailer{magic, number(s.bytes.data()) - number(s.device), s.generation};
        std::vector<std::byte> out(sizeof trailer);
        std::memcpy(out.data(), &trailer, sizeof trailer);
        return out;
    }
    return {};
}

void take_key(ucp_rkey_h key, const void* packed)
{
    Trailer trailer;
    if (find_trailer(packed, trailer) != 0) displacements[key] = trailer.displacement;
}

std::vector<std::byte> without_trailer(const void* packed)
{
    Trailer trailer;
    const auto* bytes = static_cast<const std::byte*>(packed);
    std::vector<std::byte> own(bytes, bytes + find_trailer(packed, trailer));
    if (!own.empty()) own[type_in_keys] = std::byte{UCS_MEMORY_TYPE_HOST};
    return own;
}

void drop_key(ucp_rkey_h key) { displacements.erase(key); }

std::uint64_t displaced(ucp_rkey_h key, std::uint64_t address)
{
    const auto found = displacements.find(key);
    return found == displacements.end() ? address : address + found->second;
}

void forget_shadow(const void* base)
{
    std::erase_if(shadows, [&](const Shadow& s) { return s.device == base; });
}

// A byte of the tests' data is never 0.
Landed landed_so_far()
{
    Landed landed;
    for (Shadow& s : shadows) {
        const bool is_gone = id_of(s.device) != s.id;  // the memory of the key was freed
        for (std::size_t i = 0; i < s.bytes.size() && !is_gone; i++) {
            if (s.bytes[i] != std::byte{0})
                landed.emplace_back(s.device + i, std::exchange(s.bytes[i], std::byte{0}));
        }
    }
    return landed;
}

void make_visible(const Landed& landed)
{
    for (const auto& [at, byte] : landed) *at = byte;
}

}  // namespace hier::test
