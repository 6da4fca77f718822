// SPDX-License-Identifier: BSD-3-Clause
// A lane's device memory: whether the network reads and writes it itself (GPUDirect RDMA), and the flush
// that makes visible what has landed in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hier/gpu.hpp"
#include "net/ucx/device/gdr_buffers.hpp"
#include "net/ucx/lane/in_flight.hpp"
#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class DeviceMemory final : private FlightEnd {
public:
    DeviceMemory(LaneState& lane, InFlight& flights) : lane_(lane), flights_(flights) {}

    // Lets the network read and write device memory itself, where it can. `setting` is a
    // HIER_GPU_DIRECT_*. Once, before the first collective.
    void allow(int setting, const gpu::Runtime& runtime);
    // How device memory travels, for the user; "" before allow().
    const std::string& description() const { return description_; }
    // May device memory be put from and to without a bounce buffer?
    bool is_reached() const { return buffers_ != nullptr; }

    // Registers the buffers of a call that are device memory, and gives the receive buffer's
    // registration and key. False: all goes through pinned memory. Under the worker's mutex, as the
    // next three.
    bool take(const Binding& binding, UcxMemory& receive, std::vector<std::byte>& key);
    void begin(const Binding& binding);
    void end();
    void reset() { buffers_.reset(); }
    ucs_memory_type_t type() const { return buffers_->memory_type(); }

    // Does what arrives in the collective count only once it has been flushed?
    bool needs_flush() const { return needs_flush_; }
    // The puts of a peer that have been flushed. Starts a flush where it lags behind.
    std::uint32_t flushed(std::size_t peer);

private:
    void start_flush();
    void probe();
    void ended(Flight& flight) override;

    LaneState& lane_;
    InFlight& flights_;
    std::unique_ptr<GdrBuffers> buffers_;  // none: device memory is staged
    bool needs_flush_ = false;
    std::string description_;
};

}  // namespace hier
