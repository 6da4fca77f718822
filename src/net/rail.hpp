// SPDX-License-Identifier: BSD-3-Clause
// The rail level over all network devices of a rank: a UcxLane, with a context, a worker and a board
// of its own, on each. UCX itself could stripe a put over several devices; then its signal, which
// goes over one of them, may overtake a part of it, and only a flush of all keeps it behind: a round
// trip for every chunk, that over TCP needs the receiver's help. So no chunk is cut, and each is
// signalled on the lane that it went over.
//
//     count of the put     1   2   3   4   5   6         arrived: 1..4, for 5 is missing
//     lane 0               x       x       -              highest 3
//     lane 1                   x       x       x          highest 6
//
// To and from a peer a call uses as many lanes as a shard has chunks, at most; which one is the first
// differs from peer to peer. Eager ones stay on lane 0. Members of a rail have equally many lanes;
// lane i of one talks to lane i of the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "net/joined_parts.hpp"
#include "net/lane_counts.hpp"
#include "net/ucx/retired_lanes.hpp"
#include "net/ucx/ucx_devices.hpp"
#include "team/group.hpp"

namespace hier {

struct RailSettings {
    int depth;                       // puts in flight
    int gpu_direct;                  // HIER_GPU_DIRECT_*
    const gpu::Runtime* gpu;         // null: there is none
    void (*keep_alive)() = nullptr;  // called while set-up waits
};

class Rail final : public Transport {
public:
    // Collective over the rail's group. `choices` is not empty; as many become lanes as every member
    // has and can connect. `is_partner[i]`: this rank exchanges anything with rank i of the group, which
    // is on another node. Throws on all ranks or on none.
    Rail(const Group& group, const std::vector<NetworkChoice>& choices,
         const std::vector<bool>& is_partner, const RailSettings& settings);
    ~Rail() override;

    // As UcxLane's.
    void keep(const std::shared_ptr<const void>& memory);
    bool register_buffers(const Binding& binding);
    bool register_sources(const Binding& binding, bool is_passed_on);
    const std::string& device_memory() const;
    bool reaches_devices() const;

    int lanes() const { return static_cast<int>(lanes_.size()); }
    // Does a message arrive in the order in which it went?
    bool is_in_order() const;
    bool is_rdma() const;
    // Puts in flight from a rank that the network can have at most.
    int max_in_flight() const;
    // Bytes of a call that the network can be sure to have.
    std::size_t max_bytes() const;
    // All devices, comma-separated.
    NetworkChoice choice() const;
    std::string name() const;
    // Of the slowest lane.
    NetworkRate network_rate() const;

    Status begin(const Binding& binding) override;
    Status announce(int peer) override;
    Status enter(int peer) override;
    Status announced(int peer) override;
    Status entered(int peer) override;
    Status put(const Transfer& transfer) override;
    Status copy(const Transfer&) override { return Status::bad_argument; }
    Status drain(int peer, std::uint32_t op) override;
    std::uint32_t arrived(int peer) override;
    bool is_lost(int peer) override;
    Status progress(Completions& completions) override;
    // Has a peer raised a failure?
    bool has_failed();
    bool idle() override;
    void end() override;
    void tell(std::uint32_t heartbeat) override;
    std::uint32_t heard() override;
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;

private:
    LanePointer open(const Group& group, const NetworkChoice& choice,
                     const std::vector<bool>& is_partner, const RailSettings& settings) const;
    LanePointer connect(const Group& group, const NetworkChoice& choice,
                        const std::vector<bool>& is_partner, const RailSettings& settings) const;
    std::size_t turns_for(const Binding& binding) const;
    std::size_t lanes_for(const Binding& binding) const;
    // What goes to a peer in its turn, or comes from it.
    std::size_t lane_to(int peer, std::size_t turn) const;
    std::size_t lane_from(int peer, std::size_t turn) const;
    // Does a lane carry anything to this peer?
    bool joins(int peer, std::size_t lane) const;

    std::size_t me_, members_;  // of the rail
    std::vector<LanePointer> lanes_;
    std::size_t turns_ = 1;   // of the running call, to and from a peer
    std::size_t active_ = 1;  // the lanes that it uses: the first ones
    JoinedParts drains_;
    unsigned passes_ = 0;
};

}  // namespace hier
