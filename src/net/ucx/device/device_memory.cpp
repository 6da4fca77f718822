// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/device_memory.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "hier/hier.h"
#include "net/ucx/device/gdr.hpp"

namespace hier {

void DeviceMemory::allow(int setting, const gpu::Runtime& runtime)
{
    const bool is_wanted = setting == HIER_GPU_DIRECT_ON;
    const char* memory = runtime.platform() == gpu::Platform::cuda ? "CUDA" : "ROCm";
    UcxWorker& worker = *lane_.worker;
    const NetworkChoice& choice = worker.choice();
    const std::string cause =
        why_not_gdr(setting, {memory, choice.transports.c_str(),
                              worker.knows(ucx_memory_type(runtime.platform())), is_rdma(choice),
                              ucx_version()});
    description_ = cause.empty() ? "device memory directly"
                                 : "device memory through pinned memory (" + cause + ")";
    log(HIER_LOG_DEBUG, "UCX %s on %s: %s", choice.transports.c_str(), choice.devices.c_str(),
        description_.c_str());
    if (!cause.empty() && is_wanted)
        log(HIER_LOG_ERROR,
            "coll_hier_gpu_direct is on, but %s: device memory goes through pinned memory",
            cause.c_str());
    if (!cause.empty()) return;
    std::vector<std::byte> board_key;
    std::unique_lock packing(worker.mutex());
    check(lane_.board.memory().pack_key(board_key), "packing the rail board's key");
    packing.unlock();
    buffers_ = std::make_unique<GdrBuffers>(lane_.worker, std::move(board_key), lane_.peers.size(),
                                            runtime, is_wanted ? HIER_LOG_ERROR : HIER_LOG_INFO);
    // Now, and not in a call. A call tries again what fails here, and tells the user.
    if (const int device = gpu::used_device(); device >= 0) {
        const std::lock_guard lock(worker.mutex());
        try {
            buffers_->prepare_flush(device);
        } catch (const SetupError& e) {
            log(HIER_LOG_DEBUG, "flushing device %d: %s", device, e.what());
        }
    }
}

bool DeviceMemory::take(const Binding& binding, UcxMemory& receive, std::vector<std::byte>& key)
{
    return buffers_ && buffers_->take(binding, receive, key);
}

void DeviceMemory::begin(const Binding& binding)
{
    needs_flush_ = !binding.has_bounce() && binding.receive.memory.kind == MemoryKind::device &&
                   buffers_->flush_kind() != gpu::RdmaFlush::none;
    if (needs_flush_) buffers_->flush().begin();
}

void DeviceMemory::end()
{
    if (buffers_) buffers_->end();
}

// One flush covers what has landed from all peers.
std::uint32_t DeviceMemory::flushed(std::size_t peer)
{
    ArrivalFlush& flush = buffers_->flush();
    if (lane_.landed(peer) != flush.visible(peer) && flush.is_idle()) {
        for (std::size_t i = 0; i < lane_.peers.size(); i++) flush.land(i, lane_.landed(i));
        start_flush();
    }
    return flush.visible(peer);
}

// One that fails is not repeated: the call ends by it.
void DeviceMemory::start_flush()
{
    ArrivalFlush& flush = buffers_->flush();
    flush.start();
    if (buffers_->flush_kind() == gpu::RdmaFlush::by_read) return probe();
    const Status status = buffers_->runtime().flush_rdma(lane_.binding.receive.memory.device);
    if (!failed(status)) return flush.done();
    const std::lock_guard lock(lane_.worker->mutex());
    lane_.own_failure = status;
}

// Writes a word to the device and reads it back, both over the network device.
void DeviceMemory::probe()
{
    const std::lock_guard lock(lane_.worker->mutex());
    FlushProbe& probe = buffers_->probe();
    Flight& flight = flights_.take(0, Flight::no_op);
    flight.end = this;
    flight.signal = probe.next_word();
    flight.parts = 1;
    const ucp_request_param_t param = request_of(flight);
    flights_.track(flight,
                   ucp_put_nbx(probe.endpoint(), &flight.signal, sizeof flight.signal, probe.at(),
                               probe.key().get(), &param),
                   "put");
    if (lane_.worker->signal_order() == SignalOrder::by_fence)
        flights_.track(flight, UCS_STATUS_PTR(ucp_worker_fence(lane_.worker->handle())), "fence");
    flights_.track(flight,
                   ucp_get_nbx(probe.endpoint(), &flight.read, sizeof flight.read, probe.at(),
                               probe.key().get(), &param),
                   "get");
    flights_.part_done(flight);
}

// Where nothing keeps the two in order, the read may be the first: then both are done again.
void DeviceMemory::ended(Flight& flight)
{
    ArrivalFlush& flush = buffers_->flush();
    if (failed(flight.status)) {
        lane_.own_failure = flight.status;
    } else if (buffers_->probe().is_done(flight.signal, flight.read)) {
        flush.done();
    } else {
        flush.repeat();
    }
    flights_.release(flight);
}

}  // namespace hier
