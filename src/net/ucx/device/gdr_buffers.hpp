// SPDX-License-Identifier: BSD-3-Clause
// A lane's buffers in device memory that the network reads and writes itself. They are registered call by
// call, or refused: then they go through pinned memory.
#pragma once

#include <memory>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "net/ucx/device/arrival_flush.hpp"
#include "net/ucx/device/device_keys.hpp"
#include "net/ucx/device/flush_probe.hpp"
#include "net/ucx/ucx_memory.hpp"
#include "net/ucx/ucx_worker.hpp"

namespace hier {

// UCX's name of a platform's device memory.
ucs_memory_type_t ucx_memory_type(gpu::Platform platform);

class GdrBuffers {
public:
    // `board_key`: of memory that the network is known to write to. `log_level`: of refusals.
    GdrBuffers(std::shared_ptr<UcxWorker> worker, std::vector<std::byte> board_key,
               std::size_t peers, const gpu::Runtime& runtime, int log_level);

    // Registers those of a call's buffers that are device memory, and gives the receive buffer's
    // registration and key. False: all goes through pinned memory; the cause has been logged, once
    // a buffer. Under the worker's mutex, as the rest.
    bool take(const Binding& binding, UcxMemory& receive, std::vector<std::byte>& key);
    void end() { send_.reset(); }

    ucs_memory_type_t memory_type() const { return type_; }
    const gpu::Runtime& runtime() const { return runtime_; }
    // How writes to the receive buffer's device become visible.
    gpu::RdmaFlush flush_kind() const { return flush_kind_; }
    ArrivalFlush& flush() { return flush_; }
    FlushProbe& probe() { return *probe_; }
    // Finds out how arrivals on this device become visible. Throws SetupError.
    void prepare_flush(int device);

private:
    bool enter(const Region& region, UcxMemory& memory, std::vector<std::byte>& key);
    Region as_one(Region region);
    const char* fault_of(const Region& region, UcxMemory& memory, std::vector<std::byte>& key);
    bool may_try();
    ucs_status_t map(const Region& region, UcxMemory& memory, std::vector<std::byte>& key) const;
    bool refuse(const Region& region, const char* cause);

    std::shared_ptr<UcxWorker> worker_;
    std::vector<std::byte> board_key_;
    const gpu::Runtime& runtime_;
    ucs_memory_type_t type_;
    int log_level_;
    bool is_hopeless_ = false;  // the network device registers no device memory
    bool has_registered_ = false;
    unsigned refusals_ = 0, skipped_ = 0;
    DeviceKeys keys_;
    std::vector<gpu::VmmSegment> segments_;  // of a region
    UcxMemory send_;
    std::vector<std::byte> send_key_;
    int flush_device_ = -1;  // that flush_kind_ is of
    gpu::RdmaFlush flush_kind_ = gpu::RdmaFlush::none;
    ArrivalFlush flush_;
    FlushProbe* probe_ = nullptr;  // the worker's
};

}  // namespace hier
