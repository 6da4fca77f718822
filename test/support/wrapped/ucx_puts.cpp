// SPDX-License-Identifier: BSD-3-Clause
// Puts, messages, flushes, fences and their requests.
#include <ucp/api/ucp.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "ucx.hpp"
#include "ucx_device.hpp"

using namespace hier::test;

namespace {

constexpr ucs_status_t failure = UCS_ERR_IO_ERROR;
constexpr std::size_t word = 8;
constexpr std::size_t large = 4096;
constexpr unsigned lag = 300;  // turns of the worker

// A request that the core gets instead of UCX's own.
struct Stand {
    ucp_send_nbx_callback_t callback;
    void* user_data;
    ucs_status_t status;  // at its end
};

// A put that is done for the core, but that has not been sent yet.
struct Lagging {
    ucp_ep_h endpoint;
    std::vector<std::byte> bytes;
    std::uint64_t to;
    ucp_rkey_h key;
    unsigned turns;
};

std::set<void*> stands;
std::vector<Stand*> ending;  // they end at the next turn of the worker
ucp_ep_h broken = nullptr;   // until that turn, puts behind a failed put fail, too
std::vector<Lagging*> lagging;
bool behind_large = false;  // for the networks that lose puts or words

ucs_status_ptr_t count_request(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) ucx.requests++;
    return request;
}

ucs_status_ptr_t end_later(const ucp_request_param_t* param, ucs_status_t status)
{
    auto* stand = new Stand{param->cb.send, param->user_data, status};
    stands.insert(stand);
    ending.push_back(stand);
    ucx.requests++;
    return stand;
}

ucs_status_ptr_t fail_later(ucp_ep_h endpoint, const ucp_request_param_t* param)
{
    broken = endpoint;
    return end_later(param, failure);
}

void forget(void* request, ucs_status_t, void*) { ucp_request_free(request); }

// A get in flight, with the bytes that it flushes.
struct Read {
    ucp_send_nbx_callback_t callback;
    void* user_data;
    Landed landed;
};

bool is_data(std::size_t bytes) { return bytes != word; }

bool is_lost(std::size_t bytes)
{
    const bool is_large = bytes >= large;
    switch (ucx.lanes) {
    case Lanes::one:
    case Lanes::several:
    case Lanes::several_unordered:
    case Lanes::second_late:
        behind_large = false;
        return false;
    case Lanes::loses_data:
        return is_large;
    case Lanes::loses_signals:
        behind_large = behind_large || is_large;
        return behind_large && !is_large;
    case Lanes::loses_chunks:
        behind_large = behind_large || is_large;
        return behind_large;
    case Lanes::loses_one_chunk:  // the signal is the next put on this lane
        if (is_large) behind_large = true;
        if (behind_large && !is_large) ucx.lanes = Lanes::one;
        return behind_large;
    }
    return false;
}

}  // namespace

extern "C" {

unsigned __real_ucp_worker_progress(ucp_worker_h);
unsigned __wrap_ucp_worker_progress(ucp_worker_h);
ucs_status_ptr_t __real_ucp_put_nbx(ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h,
                                    const ucp_request_param_t*);
ucs_status_ptr_t __wrap_ucp_put_nbx(ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h,
                                    const ucp_request_param_t*);
ucs_status_t __real_ucp_worker_fence(ucp_worker_h);
ucs_status_t __wrap_ucp_worker_fence(ucp_worker_h);
ucs_status_ptr_t __real_ucp_ep_flush_nbx(ucp_ep_h, const ucp_request_param_t*);
ucs_status_ptr_t __wrap_ucp_ep_flush_nbx(ucp_ep_h, const ucp_request_param_t*);
ucs_status_ptr_t __real_ucp_worker_flush_nbx(ucp_worker_h, const ucp_request_param_t*);
ucs_status_ptr_t __wrap_ucp_worker_flush_nbx(ucp_worker_h, const ucp_request_param_t*);
ucs_status_ptr_t __real_ucp_am_send_nbx(ucp_ep_h, unsigned, const void*, size_t, const void*,
                                        size_t, const ucp_request_param_t*);
ucs_status_ptr_t __wrap_ucp_am_send_nbx(ucp_ep_h, unsigned, const void*, size_t, const void*,
                                        size_t, const ucp_request_param_t*);
ucs_status_ptr_t __real_ucp_get_nbx(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h,
                                    const ucp_request_param_t*);
ucs_status_ptr_t __wrap_ucp_get_nbx(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h,
                                    const ucp_request_param_t*);
void __real_ucp_request_free(void*);
void __wrap_ucp_request_free(void*);

static void on_sent(void* request, ucs_status_t, void* user_data)
{
    __real_ucp_request_free(request);
    delete static_cast<Lagging*>(user_data);
}

static void send_put(Lagging* put)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_sent;
    param.user_data = put;
    const auto request = __real_ucp_put_nbx(put->endpoint, put->bytes.data(), put->bytes.size(),
                                            put->to, put->key, &param);
    if (!UCS_PTR_IS_PTR(request)) delete put;
}

unsigned __wrap_ucp_worker_progress(ucp_worker_h worker)
{
    std::vector<Stand*> now;
    if (ucx.may_fail == nullptr || ucx.may_fail()) {
        std::swap(now, ending);
        broken = nullptr;
    }
    for (Stand* stand : now) stand->callback(stand, stand->status, stand->user_data);
    std::erase_if(lagging, [](Lagging* put) {
        if (++put->turns < lag) return false;
        send_put(put);
        return true;
    });
    return __real_ucp_worker_progress(worker);
}

ucs_status_ptr_t __wrap_ucp_put_nbx(ucp_ep_h endpoint, const void* data, size_t bytes, uint64_t to,
                                    ucp_rkey_h key, const ucp_request_param_t* param)
{
    if (bytes >= large && ucx.before_large_put != nullptr) ucx.before_large_put();
    if (ucx.fails(UcxCall::put)) {
        return ucx.fails_later() ? fail_later(endpoint, param) : UCS_STATUS_PTR(failure);
    }
    if (endpoint == broken) return fail_later(endpoint, param);
    if (is_lost(bytes) || is_stale(key)) return nullptr;
    to = displaced(key, to);
    ucp_request_param_t plain = *param;
    if (ucx.knows_rocm)  // the real UCX takes all memory for host memory
        plain.op_attr_mask &= ~static_cast<std::uint32_t>(UCP_OP_ATTR_FIELD_MEMORY_TYPE);
    const bool is_second = !is_of_first_worker(endpoint);
    if (is_second) ucx.puts_of_second++;
    const bool may_lag = ucx.lanes == Lanes::several || ucx.lanes == Lanes::several_unordered;
    const bool lags = ucx.lanes == Lanes::second_late ? is_second : may_lag && is_data(bytes);
    if (!lags && ucx.answers_puts) {
        plain.cb.send = forget;
        const auto put = count_request(__real_ucp_put_nbx(endpoint, data, bytes, to, key, &plain));
        return UCS_PTR_IS_ERR(put) ? put : count_request(__real_ucp_ep_flush_nbx(endpoint, param));
    }
    if (!lags) return count_request(__real_ucp_put_nbx(endpoint, data, bytes, to, key, &plain));
    const auto* from = static_cast<const std::byte*>(data);
    lagging.push_back(new Lagging{endpoint, {from, from + bytes}, to, key, 0});
    return nullptr;
}

// Sends the puts that lag behind, to one peer, or to all peers if `endpoint` is nullptr.
static void send_lagging(ucp_ep_h endpoint)
{
    std::erase_if(lagging, [&](Lagging* put) {
        const bool stays = ucx.lanes == Lanes::several_unordered && put->bytes.size() >= large;
        if ((endpoint != nullptr && put->endpoint != endpoint) || stays) return false;
        send_put(put);
        return true;
    });
}

ucs_status_t __wrap_ucp_worker_fence(ucp_worker_h worker)
{
    if (ucx.fails(UcxCall::fence)) return failure;
    send_lagging(nullptr);
    return __real_ucp_worker_fence(worker);
}

ucs_status_ptr_t __wrap_ucp_ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* param)
{
    if (ucx.fails(UcxCall::flush))
        return ucx.fails_later() ? fail_later(endpoint, param) : UCS_STATUS_PTR(failure);
    send_lagging(endpoint);
    return count_request(__real_ucp_ep_flush_nbx(endpoint, param));
}

ucs_status_ptr_t __wrap_ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t* param)
{
    if (ucx.fails(UcxCall::worker_flush))
        return ucx.fails_later() ? end_later(param, failure) : UCS_STATUS_PTR(failure);
    if (ucx.keeps_back) return end_later(param, UCS_OK);
    return count_request(__real_ucp_worker_flush_nbx(worker, param));
}

ucs_status_ptr_t __wrap_ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header,
                                        size_t header_bytes, const void* data, size_t count,
                                        const ucp_request_param_t* param)
{
    if (ucx.fails(UcxCall::message))
        return ucx.fails_later() ? fail_later(endpoint, param) : UCS_STATUS_PTR(failure);
    if (endpoint == broken) return fail_later(endpoint, param);
    return count_request(
        __real_ucp_am_send_nbx(endpoint, id, header, header_bytes, data, count, param));
}

static void on_read(void* request, ucs_status_t status, void* user_data)
{
    auto* read = static_cast<Read*>(user_data);
    if (status == UCS_OK && ucx.reads_flush) make_visible(read->landed);
    read->callback(request, status, read->user_data);
    delete read;
}

ucs_status_ptr_t __wrap_ucp_get_nbx(ucp_ep_h endpoint, void* data, size_t bytes, uint64_t from,
                                    ucp_rkey_h key, const ucp_request_param_t* param)
{
    if (ucx.fails(UcxCall::get))
        return ucx.fails_later() ? fail_later(endpoint, param) : UCS_STATUS_PTR(failure);
    if (!ucx.hides_landings)
        return count_request(__real_ucp_get_nbx(endpoint, data, bytes, from, key, param));
    auto* read = new Read{param->cb.send, param->user_data, landed_so_far()};
    ucp_request_param_t ours = *param;
    ours.cb.send = on_read;
    ours.user_data = read;
    const auto request = count_request(__real_ucp_get_nbx(endpoint, data, bytes, from, key, &ours));
    if (UCS_PTR_IS_PTR(request)) return request;
    if (request == nullptr && ucx.reads_flush) make_visible(read->landed);
    delete read;
    return request;
}

void __wrap_ucp_request_free(void* request)
{
    ucx.requests--;
    if (stands.erase(request) == 0) return __real_ucp_request_free(request);
    delete static_cast<Stand*>(request);
}
}
