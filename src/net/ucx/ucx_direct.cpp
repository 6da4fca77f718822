// SPDX-License-Identifier: BSD-3-Clause
// UcxLane with device memory that the network reads and writes itself.
#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "hier/hier.h"
#include "net/ucx/device/gpu_direct.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {

void UcxLane::allow_direct(int setting, const gpu::Runtime& runtime)
{
    const bool is_wanted = setting == HIER_GPU_DIRECT_ON;
    const char* memory = runtime.platform() == gpu::Platform::cuda ? "CUDA" : "ROCm";
    const NetworkChoice& choice = worker_->choice();
    const std::string cause =
        why_not_direct(setting, {memory, choice.transports.c_str(),
                                 worker_->knows(ucx_memory_type(runtime.platform())),
                                 is_rdma(choice), ucx_version()});
    device_memory_ = cause.empty() ? "device memory directly"
                                   : "device memory through pinned memory (" + cause + ")";
    log(HIER_LOG_DEBUG, "UCX %s on %s: %s", choice.transports.c_str(), choice.devices.c_str(),
        device_memory_.c_str());
    if (!cause.empty() && is_wanted)
        log(HIER_LOG_ERROR,
            "coll_hier_gpu_direct is on, but %s: device memory goes through pinned memory",
            cause.c_str());
    if (!cause.empty()) return;
    std::vector<std::byte> board_key;
    std::unique_lock packing(worker_->mutex());
    check(board_.memory().pack_key(board_key), "packing the rail board's key");
    packing.unlock();
    direct_ = std::make_unique<RailDirect>(worker_, std::move(board_key), peers_.size(), runtime,
                                           is_wanted ? HIER_LOG_ERROR : HIER_LOG_INFO);
    // Now, and not in a call. What fails is tried again there, and told.
    if (const int device = gpu::used_device(); device >= 0) {
        const std::lock_guard lock(worker_->mutex());
        try {
            direct_->prepare_flush(device);
        } catch (const SetupError& e) {
            log(HIER_LOG_DEBUG, "flushing device %d: %s", device, e.what());
        }
    }
}

// One flush covers what has landed from all peers.
std::uint32_t UcxLane::flushed(std::size_t peer)
{
    RailFlush& flush = direct_->flush();
    if (landed(peer) != flush.visible(peer) && flush.is_idle()) {
        for (std::size_t i = 0; i < peers_.size(); i++) flush.land(i, landed(i));
        start_flush();
    }
    return flush.visible(peer);
}

// One that fails is not repeated: the call ends by it.
void UcxLane::start_flush()
{
    RailFlush& flush = direct_->flush();
    flush.start();
    if (direct_->flush_kind() == gpu::RdmaFlush::by_read) return probe();
    const Status status = direct_->runtime().flush_rdma(binding_.receive.memory.device);
    if (!failed(status)) return flush.done();
    const std::lock_guard lock(worker_->mutex());
    own_failure_ = status;
}

// Writes a word to the device and reads it back, both over the network device.
void UcxLane::probe()
{
    const std::lock_guard lock(worker_->mutex());
    FlushProbe& probe = direct_->probe();
    Flight& flight = take_flight(0, no_op);
    flight.is_probe = true;
    flight.signal = probe.next_word();
    flight.parts = 1;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_complete;
    param.user_data = &flight;
    track(flight,
          ucp_put_nbx(probe.endpoint(), &flight.signal, sizeof flight.signal, probe.at(),
                      probe.key().get(), &param),
          "put");
    if (worker_->signal_order() == SignalOrder::by_fence)
        track(flight, UCS_STATUS_PTR(ucp_worker_fence(worker_->handle())), "fence");
    track(flight,
          ucp_get_nbx(probe.endpoint(), &flight.read, sizeof flight.read, probe.at(),
                      probe.key().get(), &param),
          "get");
    part_done(flight);
}

// Where nothing keeps the two in order, the read may be the first: then both are done again.
void UcxLane::probe_done(Flight& flight)
{
    RailFlush& flush = direct_->flush();
    if (failed(flight.status)) {
        own_failure_ = flight.status;
    } else if (direct_->probe().is_done(flight.signal, flight.read)) {
        flush.done();
    } else {
        flush.repeat();
    }
    release(flight);
}

}  // namespace hier
