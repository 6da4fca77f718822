// SPDX-License-Identifier: BSD-3-Clause
// The machine on which small calls were measured, one with RDMA, and the choice of the cost model
// on each.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "tools/simulator/algorithms.hpp"

namespace hier::test {

inline constexpr std::size_t kilo = 1 << 10;

// Ranks on cores and one NIC a node over TCP, as in the 4 x 4 ranks of bench/README.md.
inline Rates tcp()
{
    Rates r;
    r.nic = 1.187e9;
    r.nic_latency = 5.26e-6;
    r.nic_issue = 10e-6;
    r.message = 4e-6;
    r.nic_gap = 5.5e-6;
    r.nics = 1;
    r.link = r.own = 5e9;
    r.link_alone = 10e9;
    r.link_latency = 1e-6;
    r.small_latency = 0.4e-6;
    r.small_bytes = 16 * kilo;
    r.publish_latency = 0.15e-6;
    r.overhead = 0.4e-6;
    r.exchange_overhead = 0.24e-6;
    r.exchange_latency = 0.06e-6;
    r.publish_space = 32704;
    r.publish_block = 23;
    return r;
}

inline Rates rdma()
{
    Rates r = tcp();
    r.nic = 50e9;
    r.nic_latency = 1.5e-6;
    r.nic_issue = r.message = 0.5e-6;
    r.nic_gap = 0;
    r.nics = 0;
    return r;
}

inline Choice choose(const std::vector<int>& layout, const Rates& rates, std::size_t bytes,
                     bool eager = true)
{
    Constraints constraints;
    constraints.eager_bytes = eager ? 32 * kilo : 0;
    return AllgatherCost(bench::simulator::make_topology(layout), rates).choose(bytes, constraints);
}

}  // namespace hier::test
