// SPDX-License-Identifier: BSD-3-Clause
// The rail level over all network devices of a rank. On each device there is a UcxLane with a context, a
// worker and a board of its own.
//
// UCX itself could stripe a put over several devices. Its signal goes over one of them, and may
// overtake a part of the put. Only a flush of all devices keeps the signal behind: a round trip for
// every chunk, which over TCP needs the receiver's help. So no chunk is cut, and each is signalled on
// the lane that it took.
//
//     count of the put     1   2   3   4   5   6         arrived: 1..4, for 5 is missing
//     lane 0               x       x       -              highest 3
//     lane 1                   x       x       x          highest 6
//
// The first lane differs from peer to peer (stripes.hpp). Members of a rail have equally many lanes;
// lane i of one talks to lane i of the others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/joined_parts.hpp"
#include "net/network_transport.hpp"
#include "net/stripes.hpp"
#include "net/ucx/lane/retired_lanes.hpp"

namespace hier {

class Rail final : public NetworkTransport {
public:
    // `rank` of `size`: in the rail's group. The lanes are connected; there is at least one.
    Rail(int rank, int size, std::vector<LanePointer> lanes, NetworkTraits traits);

    const NetworkTraits& traits() const override { return traits_; }
    void keep(const std::shared_ptr<const void>& memory) override;
    bool register_buffers(const Binding& binding) override;
    bool register_sources(const Binding& binding, bool is_passed_on) override;
    bool has_failed() override;
    Status connect(std::vector<int> peers) override;
    void answer_late() override;

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
    bool idle() override;
    void end() override;
    void tell(std::uint32_t heartbeat) override;
    std::uint32_t heard() override;
    bool have_parts_come() override;
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;

private:
    int rank_, size_;
    std::vector<LanePointer> lanes_;
    NetworkTraits traits_;
    Stripes stripes_;
    JoinedParts drains_;
    unsigned passes_ = 0;
};

}  // namespace hier
