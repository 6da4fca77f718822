// SPDX-License-Identifier: BSD-3-Clause
// Memory and keys. If registrations are watched, a packed key is a tag and then UCX's own key.
#include <sys/mman.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "ucx.hpp"
#include "ucx_device.hpp"

namespace hier::test {

struct Registrations::Shared {
    static constexpr std::size_t max_ranks = 8;
    std::atomic<std::uint64_t> generations[max_ranks];
    std::atomic<unsigned> stale_puts;
};

Registrations::Registrations()
{
    void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);  // zero
    if (at == MAP_FAILED) throw std::bad_alloc();
    shared_ = static_cast<Shared*>(at);
}

Registrations::~Registrations() { munmap(shared_, sizeof(Shared)); }

void Registrations::watch(int rank, const void* begin, std::size_t bytes)
{
    rank_ = static_cast<std::uint64_t>(rank);
    begin_ = static_cast<const std::byte*>(begin);
    bytes_ = bytes;
}

void Registrations::renew() { shared_->generations[rank_]++; }

unsigned Registrations::stale_puts() const { return shared_->stale_puts; }

Registrations::Key Registrations::key_of(const void* begin) const
{
    const auto* at = static_cast<const std::byte*>(begin);
    if (at < begin_ || at >= begin_ + bytes_) return {none, 0};
    return {rank_, shared_->generations[rank_]};
}

bool Registrations::is_stale(const Key& key)
{
    if (key.owner == none || key.generation == shared_->generations[key.owner]) return false;
    shared_->stale_puts++;
    return true;
}

static std::map<const void*, Registrations::Key> unpacked;  // by UCX's key

bool is_stale(const void* key)
{
    const auto known = unpacked.find(key);
    return known != unpacked.end() && ucx.registrations->is_stale(known->second);
}

}  // namespace hier::test

using namespace hier::test;

namespace {

constexpr ucs_status_t failure = UCS_ERR_IO_ERROR;

// A registration and its key.
struct Registered {
    const void* begin;
    Registrations::Key key;
};
std::map<ucp_mem_h, Registered> registered;
std::map<const void*, Registrations::Key> first_keys;  // by address

std::set<void*> longer_keys;  // made here

Registrations::Key key_to_pack(ucp_mem_h memory)
{
    const Registered& what = registered[memory];
    const auto first = first_keys.try_emplace(what.begin, what.key).first;
    return ucx.packs_old_keys ? first->second : what.key;
}

}  // namespace

extern "C" {

ucs_status_t __real_ucp_mem_map(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*);
ucs_status_t __wrap_ucp_mem_map(ucp_context_h, const ucp_mem_map_params_t*, ucp_mem_h*);
ucs_status_t __real_ucp_mem_unmap(ucp_context_h, ucp_mem_h);
ucs_status_t __wrap_ucp_mem_unmap(ucp_context_h, ucp_mem_h);
ucs_status_t __real_ucp_rkey_pack(ucp_context_h, ucp_mem_h, void**, size_t*);
ucs_status_t __wrap_ucp_rkey_pack(ucp_context_h, ucp_mem_h, void**, size_t*);
void __real_ucp_rkey_buffer_release(void*);
void __wrap_ucp_rkey_buffer_release(void*);
ucs_status_t __real_ucp_ep_rkey_unpack(ucp_ep_h, const void*, ucp_rkey_h*);
ucs_status_t __wrap_ucp_ep_rkey_unpack(ucp_ep_h, const void*, ucp_rkey_h*);
void __real_ucp_rkey_destroy(ucp_rkey_h);
void __wrap_ucp_rkey_destroy(ucp_rkey_h);

// Replaces UCX's packed key by one that is longer by `more` bytes, with UCX's own bytes from `at`
// on.
static std::byte* longer_key(void*& packed, std::size_t& bytes, std::size_t more, std::size_t at)
{
    auto* longer = static_cast<std::byte*>(std::malloc(bytes + more));
    std::memcpy(longer + at, packed, bytes);
    __real_ucp_rkey_buffer_release(std::exchange(packed, longer));
    bytes += more;
    longer_keys.insert(longer);
    return longer;
}

ucs_status_t __wrap_ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                                ucp_mem_h* out)
{
    if (ucx.fails(UcxCall::mem_map)) return failure;
    if (ucx.refuses_devices && params->memory_type == UCS_MEMORY_TYPE_ROCM) {
        ucs_log_component(UCS_LOG_LEVEL_ERROR, &ucs_global_opts.log_component, "no such memory");
        return failure;
    }
    ucp_mem_map_params_t actual = *params;
    const bool is_hidden = ucx.hides_landings && is_shadowed(*params);
    if (is_hidden) actual.address = shadow_of(*params);
    // TCP registers all host memory, and no device memory.
    if (ucx.knows_rocm) actual.memory_type = UCS_MEMORY_TYPE_HOST;
    const ucs_status_t status = __real_ucp_mem_map(context, &actual, out);
    if (status != UCS_OK) return status;
    ucx.mappings++;
    if (ucx.hides_landings) remember(*out, is_hidden ? actual.address : nullptr);
    if (ucx.registrations != nullptr)
        registered[*out] = {params->address, ucx.registrations->key_of(params->address)};
    return UCS_OK;
}

ucs_status_t __wrap_ucp_mem_unmap(ucp_context_h context, ucp_mem_h memory)
{
    ucx.mappings--;
    return __real_ucp_mem_unmap(context, memory);
}

ucs_status_t __wrap_ucp_rkey_pack(ucp_context_h context, ucp_mem_h memory, void** out,
                                  size_t* bytes)
{
    if (ucx.fails(UcxCall::rkey_pack)) return failure;
    const ucs_status_t status = __real_ucp_rkey_pack(context, memory, out, bytes);
    if (status != UCS_OK) return status;
    ucx.packed++;
    if (ucx.registrations != nullptr) {
        const Registrations::Key key = key_to_pack(memory);
        auto* tagged = longer_key(*out, *bytes, sizeof key, sizeof key);
        std::memcpy(tagged, &key, sizeof key);
    } else if (const auto trailer = trailer_of(memory); !trailer.empty()) {
        const std::size_t own = *bytes;
        auto* followed = longer_key(*out, *bytes, trailer.size(), 0);
        followed[type_in_keys] = std::byte{UCS_MEMORY_TYPE_ROCM};
        std::memcpy(followed + own, trailer.data(), trailer.size());
    }
    return UCS_OK;
}

void __wrap_ucp_rkey_buffer_release(void* packed)
{
    ucx.packed--;
    if (longer_keys.erase(packed) != 0) return std::free(packed);
    __real_ucp_rkey_buffer_release(packed);
}

ucs_status_t __wrap_ucp_ep_rkey_unpack(ucp_ep_h endpoint, const void* packed, ucp_rkey_h* out)
{
    if (ucx.fails(UcxCall::rkey_unpack)) return failure;
    Registrations::Key key{};
    const std::size_t tag = ucx.registrations != nullptr ? sizeof key : 0;
    std::memcpy(&key, packed, tag);
    const auto own = tag > 0 ? std::vector<std::byte>() : without_trailer(packed);
    const void* ucx_key = own.empty() ? static_cast<const std::byte*>(packed) + tag : own.data();
    const ucs_status_t status = __real_ucp_ep_rkey_unpack(endpoint, ucx_key, out);
    if (status != UCS_OK) return status;
    ucx.keys++;
    if (tag > 0) {
        unpacked[*out] = key;
    } else {
        take_key(*out, packed);
    }
    return UCS_OK;
}

void __wrap_ucp_rkey_destroy(ucp_rkey_h key)
{
    ucx.keys--;
    unpacked.erase(key);
    drop_key(key);
    __real_ucp_rkey_destroy(key);
}
}
