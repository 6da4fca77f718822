// SPDX-License-Identifier: BSD-3-Clause
// The speeds of a team's machines, as cost models take them.
#pragma once

#include <cstddef>

namespace hier {

// In bytes per second and in seconds.
struct Rates {
    double nic = 0;  // a NIC, in each direction; > 0
    double nic_latency = 0;
    double nic_issue = 0;   // a core's time for a put with its signal
    double message = 0;     // a core's time for an eager message, at either end
    double nic_gap = 0;     // a NIC's time for a put or a message, whatever its size
    int nics = 0;           // of a node; 0: one for each rank. Local rank l uses NIC l % nics
    int lanes = 1;          // NICs in the place of each one; a rank's chunks are striped over them
    double link = 0;        // all pushes of one rank; > 0
    double link_alone = 0;  // the same while nobody pushes to this rank; 0: as `link`
    double link_latency = 0;
    // The latency of pushes of shards of up to `small_bytes`.
    double small_latency = 0;
    std::size_t small_bytes = 0;
    // The latency of a publish. Such small shards are published if all that a rank pushes to its
    // node fits into `publish_space`, with `publish_block` bytes more for each block. Space 0: none
    // is.
    double publish_latency = 0;
    std::size_t publish_space = 0, publish_block = 0;
    // The same where ranks publish host memory alone: the largest shard, and the space. 0: no rank does.
    std::size_t host_publish_bytes = 0, host_publish_space = 0;
    // Results of up to so many bytes go through memory that the ranks of a node share. A rank writes a block
    // there once, for all others. 0: none goes there.
    std::size_t shared_result = 0;
    // Kernels push blocks of up to so many bytes to all other ranks of a node, if there are at least
    // two of them. A kernel takes all blocks that wait, up to `kernel_blocks`, and kernels follow one
    // another with a gap. 0: there are none.
    std::size_t fan_out = 0;
    int kernel_blocks = 1;
    double kernel_gap = 0;
    // Of a copy or a kernel. Those that wait on the device hide it.
    double launch = 0;
    double copy_issue = 0;
    int streams = 1;
    double node = 0;            // all pushes of a node together; 0: only `link` limits them
    double own = 0;             // a copy inside a rank's memory; > 0
    double stage = 0;           // to and from the bounce buffer; 0: there is none
    bool engines = false;       // copy engines copy, so the ranks' cores do not
    bool shares_cores = false;  // a host has more ranks than cores
    double overhead = 0;
    // The same, and the latency of a publish, in a call that ends in its start (Transport::exchange). 0: none does.
    double exchange_overhead = 0, exchange_latency = 0;
    // The extra time of a call of the fallback module, because its memory has to be the host's: a
    // constant, and a rate. 0: nothing.
    double detour = 0, detour_rate = 0;
};

}  // namespace hier
