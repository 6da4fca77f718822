// SPDX-License-Identifier: BSD-3-Clause
// A lane's buffers of a call. They are registered before the call, or refused: then it needs a bounce
// buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/ucx/device/device_memory.hpp"
#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class CallBuffers {
public:
    CallBuffers(LaneState& lane, DeviceMemory& device) : lane_(lane), device_(device) {}

    // Registers the buffers of the collective that begins next, which is not eager and has no bounce
    // buffer. False: the network cannot reach them all, and the call needs a bounce buffer.
    bool register_buffers(const Binding& binding);
    // The same for an eager call in memory of the host. Only memory that is sent from matters: the send
    // buffer, and the receive buffer if this rank passes on other ranks' shards.
    bool register_sources(const Binding& binding, bool is_passed_on);
    // Memory that peers may write into: it stays until they have left, as the board does.
    void keep(std::shared_ptr<const void> memory) { kept_ = std::move(memory); }

    // Under the worker's mutex, as the rest. Announces where peers write in the collective of the lane's
    // binding.
    Status announce();
    // For this peer. It stays as it is until the next collective.
    const Announcement& announcement(std::size_t peer);
    void reset();

private:
    // Does each peer get another address?
    bool is_by_peer() const;
    const char* why_out_of_reach(const Binding& binding);
    bool give_up(const char* cause);
    const char* enter(UcxMemory& memory, const Region& region);
    struct Told {
        Announcement announcement{};
        std::uint64_t id = 0;  // of device memory: whose announcement that is
    };
    void renew(Told& told, const std::byte* address, std::size_t home = 0);

    LaneState& lane_;
    DeviceMemory& device_;
    UcxMemory receive_;           // or the bounce buffer
    UcxMemory send_;              // where it is no part of the receive buffer
    bool has_told_ = false;       // of the host's memory that could not be registered
    std::vector<std::byte> key_;  // of the receive buffer
    Told to_all_;
    std::vector<Told> by_peer_;  // made for the first call in which they differ
    std::uint64_t last_version_ = 0;
    std::shared_ptr<const void> kept_;
};

}  // namespace hier
