// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {
namespace {

// The bytes that a node needs, and the rates of the devices that can bring them.
struct Need {
    double ranks;
    double entering;  // (P-G) S, each byte once
    double all;       // G (P-1) S, each byte at each rank
    double nics;
    double links;
};

std::vector<Need> needs_of(const std::vector<int>& ranks_of, std::size_t bytes,
                           const Machine& machine)
{
    const int ranks = std::accumulate(ranks_of.begin(), ranks_of.end(), 0);
    const auto size = static_cast<double>(bytes);
    std::vector<Need> needs;
    for (const int here : ranks_of) {
        const double entering = (ranks - here) * size;
        const double nics = entering > 0 ? machine.nics_of(here) * machine.nic_rate : 0;
        const double links = machine.is_host
                                 ? std::min(here * machine.core_rate, machine.memory_rate)
                                 : here * machine.link_rate;
        needs.push_back(
            {static_cast<double>(here), entering, here * (ranks - 1.0) * size, nics, links});
    }
    return needs;
}

// The time at which `bytes` are there. NICs bring some from `latency` on, and links from `copy` on.
double shared_end(double bytes, double nics, double latency, double links, double copy)
{
    const bool links_first = nics <= 0 || copy <= latency;
    const double early = links_first ? links : nics;
    const double first = links_first ? copy : latency, second = links_first ? latency : copy;
    if (nics <= 0 || bytes <= early * (second - first)) return first + bytes / early;
    return second + (bytes - early * (second - first)) / (nics + links);
}

void raise(double& bound, double seconds) { bound = std::max(bound, seconds); }

}  // namespace

// P ranks, G of them on the node, S bytes each. (P-G) S has to enter by NICs. The node's ranks need
// G (P-1) S in all, by NIC or by link. No split between the two is faster than their sum. If each
// block crosses the network once, the links alone bring all but (P-G) S.
Bound lower_bound(const std::vector<int>& ranks_of, std::size_t bytes, const Machine& machine)
{
    Bound bound;
    for (const Need& need : needs_of(ranks_of, bytes, machine)) {
        if (need.entering > 0) raise(bound.network, need.entering / need.nics);
        raise(bound.links, need.all / (need.nics + need.links));
        raise(bound.links_once, (need.all - need.entering) / need.links);
    }
    return bound;
}

// The same with latencies. E = (P-G) S. T is the end.
//
//     R  rate of a node's NICs         L  latency of the network
//     K  rate of a node's links        i  issue of a copy, l its latency
//
// Network. Nothing enters before L, so at most R (T - L) bytes do. A byte that enters after T - l
// is too late for a copy, so each of the G ranks gets the byte from a NIC. So the last l brings at
// most R l / G different bytes.
//     E <= R (T - L - l) + R l / G,    T >= L + E/R + l (1 - 1/G)
// If all of E may enter as late as that, T >= L + G E/R.
//
// Links. No copy moves a byte before i, and none that moves one after T - l ends in time:
//     G (P-1) S <= R (T - L) + K (T - i - l),    brackets below 0 counting as 0
// If each block crosses once, the links alone bring all but E.
//
// Announcements are left out. Data may land where nobody has to ask.
Bound latency_bound(const std::vector<int>& ranks_of, std::size_t bytes, const Machine& machine)
{
    const bool is_small = machine.is_host && bytes <= machine.small_bytes;
    const double network = machine.nic_latency;
    const double copy =
        is_small ? std::min({machine.link_latency, machine.small_latency, machine.publish_latency})
                 : machine.link_latency;
    const double first_copy = (machine.is_host ? 0 : machine.copy_issue) + copy;
    Bound bound;
    for (const Need& need : needs_of(ranks_of, bytes, machine)) {
        const double entering = need.entering, ranks = need.ranks;
        if (entering > 0) {
            const bool may_be_late = entering <= need.nics * copy / ranks;
            raise(bound.network,
                  network + (may_be_late ? ranks * entering / need.nics
                                         : entering / need.nics + copy * (1 - 1 / ranks)));
        }
        if (ranks < 2) continue;
        raise(bound.links, shared_end(need.all, need.nics, network, need.links, first_copy));
        raise(bound.links_once, first_copy + (need.all - entering) / need.links);
    }
    for (double* seconds : {&bound.network, &bound.links, &bound.links_once})
        *seconds += *seconds > 0 ? machine.overhead : 0;
    return bound;
}

}  // namespace bench::simulator
