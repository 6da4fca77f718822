// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/ucx_worker.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <ucs/debug/log_def.h>

#include <atomic>
#include <cstdarg>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "net/ucx/ucx_memory.hpp"

namespace hier {

namespace {

constexpr std::size_t descriptors_of_worker = 12;
constexpr std::size_t descriptors_of_connection = 4;

// UCX's list of handlers has no lock.
std::mutex& handlers_mutex()
{
    static std::mutex instance;
    return instance;
}
std::atomic<ucs_log_level_t> quiet_level{UCS_LOG_LEVEL_WARN};

// UCX complains without end about buffers that it cannot lock: so hier tries one first.
void require_lockable(ucp_context_h context, const NetworkChoice& choice)
{
    const auto max = max_lockable();
    if (!max || !is_rdma(choice)) return;
    void* pages =
        mmap(nullptr, locked_by_ucx, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    ucs_status_t status = UCS_OK;
    {
        const QuietUcx quiet;
        UcxMemory memory;
        status = memory.map(context, pages, locked_by_ucx, UCS_MEMORY_TYPE_HOST);
    }
    munmap(pages, locked_by_ucx);
    if (status != UCS_OK)
        throw SetupError(format("UCX cannot lock %zu MiB for RDMA: %s; this process may lock %zu "
                                "KiB (ulimit -l)",
                                locked_by_ucx >> 20, ucs_status_string(status), *max >> 10));
}

}  // namespace

// UCX warns of puts that nobody has acknowledged. That is how it has to be here: a rank that waits for the
// acknowledgement of its last word waits for a peer that may have left.
void UcxWorker::WorkerDestroy::operator()(ucp_worker_h worker) const
{
    const QuietUcx quiet(UCS_LOG_LEVEL_WARN);
    ucp_worker_destroy(worker);
}

QuietUcx::QuietUcx(ucs_log_level_t gravest_but)
{
    handlers_mutex().lock();
    quiet_level = gravest_but;
    ucs_log_push_handler([](const char*, unsigned, const char*, ucs_log_level_t level,
                            const ucs_log_component_config_t*, const char*, va_list) {
        return level < quiet_level ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
    });
}

QuietUcx::~QuietUcx()
{
    ucs_log_pop_handler();
    handlers_mutex().unlock();
}

void check(ucs_status_t status, const char* what)
{
    if (status != UCS_OK) throw SetupError(format("%s: %s", what, ucs_status_string(status)));
}

UcxWorker::UcxWorker(const NetworkChoice& choice)
    : choice_(choice), order_(signal_order_for(choice))
{
    make_context();
    make_worker();
}

void UcxWorker::progress(int max)
{
    for (int i = 0; i < max && ucp_worker_progress(handle()) != 0; i++) {
    }
}

void UcxWorker::keep()
{
    is_kept_ = true;
    // Open MPI closes components: this file stays, and what it is linked with.
    Dl_info here;
    static const char anything = 0;
    if (dladdr(&anything, &here) != 0)
        (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

UcxWorker::~UcxWorker()
{
    if (!is_kept_) return;
    (void)worker_.release();
    (void)context_.release();
}

FlushProbe& UcxWorker::probe(const gpu::Runtime& runtime, int device, ucs_memory_type_t type)
{
    auto& probe = probes_[device];
    if (!probe) probe = std::make_unique<FlushProbe>(*this, runtime, device, type);
    return *probe;
}

void UcxWorker::make_context()
{
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "reading the UCX configuration");
    configure(config, choice_);

    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
    params.mt_workers_shared = 0;
    ucp_context_h context = nullptr;
    const ucs_status_t status = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        const std::string where =
            choice_.devices.empty() ? "any device" : "device \"" + choice_.devices + "\"";
        throw SetupError(format("UCX cannot use transports \"%s\" on %s: %s "
                                "(coll_hier_net_transports, coll_hier_net_devices)",
                                choice_.transports.c_str(), where.c_str(),
                                ucs_status_string(status)));
    }
    context_.reset(context);
}

// UCX says only that it recognises such memory, not that the network device can register it.
bool UcxWorker::knows(ucs_memory_type_t type) const
{
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    if (ucp_context_query(context(), &attributes) != UCS_OK) return false;
    return (attributes.memory_types & UCS_BIT(type)) != 0;
}

void UcxWorker::make_worker()
{
    require_lockable(context(), choice_);
    require_descriptors(descriptors_of_worker);
    require_thread();
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucp_worker_h worker = nullptr;
    check(ucp_worker_create(context(), &params, &worker), "creating a UCX worker");
    worker_.reset(worker);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = MessageSink::id;
    handler.cb = on_message;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker, &handler), "taking messages from UCX");

    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker, &address, &length),
          "asking UCX for this process's address");
    address_.resize(length);
    std::memcpy(address_.data(), address, length);
    ucp_worker_release_address(worker, address);
}

// Messages are short and eager (UCP_AM_SEND_FLAG_EAGER): the data is here. A message to a lane that is gone
// is dropped (wireup.hpp).
ucs_status_t UcxWorker::on_message(void* worker, const void* head, std::size_t head_bytes,
                                   void* data, std::size_t bytes, const ucp_am_recv_param_t* param)
{
    if (head_bytes != sizeof(MessageHead) || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        log(HIER_LOG_ERROR,
            "a message that no rank of this program sends is dropped (its head has %zu bytes)",
            head_bytes);
        return UCS_OK;
    }
    MessageHead known;
    std::memcpy(&known, head, sizeof known);
    auto& sinks = static_cast<UcxWorker*>(worker)->sinks_;
    const auto sink = sinks.find(known.sink);
    if (sink != sinks.end())
        sink->second->take_message(known, static_cast<const std::byte*>(data), bytes);
    return UCS_OK;
}

std::string UcxWorker::doubt() const
{
    return format("is %s on device \"%s\" the right network? (coll_hier_net_devices)",
                  choice_.transports.c_str(), choice_.devices.c_str());
}

bool UcxWorker::is_connected(const std::vector<std::byte>& peer_address) const
{
    const auto found = connections_.find(peer_address);
    return found != connections_.end() && found->second != nullptr;
}

ucp_ep_h UcxWorker::connect(const std::vector<std::byte>& peer_address)
{
    ucp_ep_h& endpoint = connections_[peer_address];
    if (endpoint != nullptr && !is_broken(endpoint)) return endpoint;
    broken_.reserve(broken_.size() + connections_.size());
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(peer_address.data());
    // Without a handler UCX ends the process when a peer that has left answers no more. With one,
    // transfers on their way end with an error.
    if (is_rdma(choice_)) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = this;
        params.err_handler.cb = [](void* worker, ucp_ep_h failed, ucs_status_t) {
            auto& self = *static_cast<UcxWorker*>(worker);
            self.broken_.push_back(failed);
            self.has_broken_.store(true, std::memory_order_release);
        };
    }
    require_descriptors(descriptors_of_connection);
    ucp_ep_h made = nullptr;
    const ucs_status_t status = ucp_ep_create(handle(), &params, &made);
    if (status != UCS_OK)
        throw SetupError(format("connecting to a rail peer: %s; %s", ucs_status_string(status),
                                doubt().c_str()));
    return endpoint = made;
}

}  // namespace hier
