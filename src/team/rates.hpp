// SPDX-License-Identifier: BSD-3-Clause
// What a team's cost model takes its machine to be: stated by the user, told by UCX, or assumed.
// Equal on all ranks, because the slowest rank's figures are taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "coll/common/rates.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "net/network_transport.hpp"

namespace hier {

// What a rank tells the others, as bytes: no padding.
struct RateRecord {
    std::uint64_t device;     // equal for the ranks of a host that share their network devices
    std::int64_t lanes;       // how many these are
    std::uint64_t max_bytes;  // of a call, that its network can be sure to have
    double nic, nic_latency, nic_issue, message, nic_gap;
    double link;               // stated; 0: not
    std::int32_t nic_is;       // Source
    std::int32_t uses_device;  // 1: a GPU
    std::int32_t stages;       // 1: its network does not reach device memory
    std::int32_t in_order;     // 1: its network delivers in order
    std::uint64_t publish;     // Rates::publish_space
    enum Source : std::int32_t { stated, told, assumed };
};
static_assert(std::is_trivially_copyable_v<RateRecord>);

RateRecord own_rates(const hier_config& config, bool uses_device, const NetworkTraits& network);

struct TeamRates {
    Rates rates;
    bool may_be_eager = true;   // everybody's network delivers in order
    std::size_t max_bytes = 0;  // everybody's network can have as many
    std::string text;           // what they are and where they come from
};
TeamRates team_rates(std::span<const RateRecord> records, const Topology& topology);

}  // namespace hier
