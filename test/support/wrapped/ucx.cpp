// SPDX-License-Identifier: BSD-3-Clause
// Set-up. Memory and keys are in ucx_keys.cpp, puts and their requests in ucx_puts.cpp.
#include "ucx.hpp"

#include <ucp/api/ucp.h>

#include <cstring>
#include <set>
#include <utility>

namespace hier::test {

WrappedUcx ucx;

const char* to_string(UcxCall call)
{
    switch (call) {
    case UcxCall::config_read:
        return "ucp_config_read";
    case UcxCall::init:
        return "ucp_init";
    case UcxCall::worker_create:
        return "ucp_worker_create";
    case UcxCall::get_address:
        return "ucp_worker_get_address";
    case UcxCall::ep_create:
        return "ucp_ep_create";
    case UcxCall::mem_map:
        return "ucp_mem_map";
    case UcxCall::rkey_pack:
        return "ucp_rkey_pack";
    case UcxCall::rkey_unpack:
        return "ucp_ep_rkey_unpack";
    case UcxCall::put:
        return "ucp_put_nbx";
    case UcxCall::flush:
        return "ucp_ep_flush_nbx";
    case UcxCall::fence:
        return "ucp_worker_fence";
    case UcxCall::get:
        return "ucp_get_nbx";
    case UcxCall::context_query:
        return "ucp_context_query";
    case UcxCall::message:
        return "ucp_am_send_nbx";
    case UcxCall::worker_flush:
        return "ucp_worker_flush_nbx";
    }
    return "?";
}

void WrappedUcx::fail_nth(UcxCall call, int nth, UcxFailure how)
{
    call_ = call;
    left_ = nth;
    how_ = how;
    has_failed_ = false;
}

bool WrappedUcx::fails(UcxCall call)
{
    calls_[static_cast<std::size_t>(call)]++;
    if (call != call_ || left_ == 0) return false;
    if (how_ == UcxFailure::for_good && left_ == 1) return has_failed_ = true;
    return --left_ == 0 && (has_failed_ = true);
}

std::string WrappedUcx::leaks() const
{
    const std::pair<const char*, long> all[] = {{"contexts", contexts}, {"configurations", configs},
                                                {"workers", workers},   {"addresses", addresses},
                                                {"mappings", mappings}, {"packed keys", packed},
                                                {"keys", keys},         {"requests", requests}};
    std::string out;
    for (const auto& [name, count] : all) {
        if (count != 0)
            out += (out.empty() ? "not given back: " : ", ") + std::to_string(count) + ' ' + name;
    }
    return out;
}

}  // namespace hier::test

using namespace hier::test;

static constexpr ucs_status_t failure = UCS_ERR_IO_ERROR;
static ucp_worker_h first_worker = nullptr;
static std::set<const void*> of_first_worker;

bool hier::test::is_of_first_worker(const void* endpoint)
{
    return of_first_worker.contains(endpoint);
}

#define REAL_AND_WRAPPED(type, name, ...)                                                          \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

extern "C" {

REAL_AND_WRAPPED(ucs_status_t, ucp_config_read, const char*, const char*, ucp_config_t**);
REAL_AND_WRAPPED(void, ucp_config_release, ucp_config_t*);
REAL_AND_WRAPPED(ucs_status_t, ucp_config_modify, ucp_config_t*, const char*, const char*);
REAL_AND_WRAPPED(ucs_status_t, ucp_init_version, unsigned, unsigned, const ucp_params_t*,
                 const ucp_config_t*, ucp_context_h*);
REAL_AND_WRAPPED(void, ucp_cleanup, ucp_context_h);
REAL_AND_WRAPPED(ucs_status_t, ucp_context_query, ucp_context_h, ucp_context_attr_t*);
REAL_AND_WRAPPED(ucs_status_t, ucp_worker_create, ucp_context_h, const ucp_worker_params_t*,
                 ucp_worker_h*);
REAL_AND_WRAPPED(void, ucp_worker_destroy, ucp_worker_h);
REAL_AND_WRAPPED(ucs_status_t, ucp_worker_get_address, ucp_worker_h, ucp_address_t**, size_t*);
REAL_AND_WRAPPED(void, ucp_worker_release_address, ucp_worker_h, ucp_address_t*);
REAL_AND_WRAPPED(ucs_status_t, ucp_ep_create, ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*);

ucs_status_t __wrap_ucp_config_read(const char* prefix, const char* file, ucp_config_t** out)
{
    if (ucx.fails(UcxCall::config_read)) return failure;
    const ucs_status_t status = __real_ucp_config_read(prefix, file, out);
    if (status == UCS_OK) ucx.configs++;
    return status;
}

void __wrap_ucp_config_release(ucp_config_t* config)
{
    ucx.configs--;
    __real_ucp_config_release(config);
}

ucs_status_t __wrap_ucp_config_modify(ucp_config_t* config, const char* name, const char* value)
{
    ucx.settings[name] = value;
    const bool is_forced = ucx.transports != nullptr && std::strcmp(name, "TLS") == 0;
    return __real_ucp_config_modify(config, name, is_forced ? ucx.transports : value);
}

ucs_status_t __wrap_ucp_init_version(unsigned major, unsigned minor, const ucp_params_t* params,
                                     const ucp_config_t* config, ucp_context_h* out)
{
    if (ucx.fails(UcxCall::init)) return failure;
    const ucs_status_t status = __real_ucp_init_version(major, minor, params, config, out);
    if (status == UCS_OK) ucx.contexts++;
    return status;
}

ucs_status_t __wrap_ucp_context_query(ucp_context_h context, ucp_context_attr_t* attributes)
{
    if (ucx.fails(UcxCall::context_query)) return failure;
    const ucs_status_t status = __real_ucp_context_query(context, attributes);
    if (status == UCS_OK && ucx.knows_rocm && attributes->field_mask == UCP_ATTR_FIELD_MEMORY_TYPES)
        attributes->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_ROCM);
    return status;
}

void __wrap_ucp_cleanup(ucp_context_h context)
{
    ucx.contexts--;
    __real_ucp_cleanup(context);
}

ucs_status_t __wrap_ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                                      ucp_worker_h* out)
{
    if (ucx.fails(UcxCall::worker_create)) return failure;
    const ucs_status_t status = __real_ucp_worker_create(context, params, out);
    if (status == UCS_OK) ucx.workers++;
    return status;
}

void __wrap_ucp_worker_destroy(ucp_worker_h worker)
{
    ucx.workers--;
    ucx.destroyed_workers++;
    __real_ucp_worker_destroy(worker);
}

ucs_status_t __wrap_ucp_worker_get_address(ucp_worker_h worker, ucp_address_t** out, size_t* length)
{
    if (ucx.fails(UcxCall::get_address)) return failure;
    const ucs_status_t status = __real_ucp_worker_get_address(worker, out, length);
    if (status == UCS_OK) ucx.addresses++;
    return status;
}

void __wrap_ucp_worker_release_address(ucp_worker_h worker, ucp_address_t* address)
{
    ucx.addresses--;
    __real_ucp_worker_release_address(worker, address);
}

ucs_status_t __wrap_ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params, ucp_ep_h* out)
{
    if (ucx.fails(UcxCall::ep_create)) return failure;
    const ucs_status_t status = __real_ucp_ep_create(worker, params, out);
    if (first_worker == nullptr) first_worker = worker;
    if (status == UCS_OK && worker == first_worker) of_first_worker.insert(*out);
    return status;
}
}
