// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {
namespace {

// What a node needs, in bytes, and what can bring it, in bytes per second.
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

// When `bytes` are there, of which NICs bring some from `latency` on, and links from `copy` on.
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
// G (P-1) S in all, by NIC or by link: no split between the two is faster than their sum. Where each
// block crosses the network once, all but (P-G) S is the links' alone.
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

// The same with E = (P-G) S; R the rate of a node's NICs, K of its links; L the network's latency;
// i and l a copy's issue and latency; T the end.
//
// Network. Nothing enters before L: R (T - L) bytes at the most. A byte that enters after T - l is
// too late for a copy of it, so each of the G ranks gets it from a NIC: the last l brings R l / G
// different bytes at the most.
//     E <= R (T - L - l) + R l / G,    T >= L + E/R + l (1 - 1/G)
// or, where all of E may enter as late as that, T >= L + G E/R.
//
// Links. No copy moves a byte before i, and none that moves one after T - l ends in time:
//     G (P-1) S <= R (T - L) + K (T - i - l),    brackets below 0 counting as 0
// Of blocks that cross once all but E is the links' alone.
//
// Not in it, because data may land where nobody has to ask: announcements.
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
