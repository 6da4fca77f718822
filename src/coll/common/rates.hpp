// SPDX-License-Identifier: BSD-3-Clause
// How fast a team's machines are, as cost models take it.
#pragma once

#include <cstddef>

namespace hier {

// Bytes per second, seconds.
struct Rates {
    double nic = 0;  // > 0, each direction
    double nic_latency = 0;
    double nic_issue = 0;   // of a put with its signal
    double message = 0;     // of an eager message, for the core at either end
    double nic_gap = 0;    // of either for the NIC, which takes one at a time
    int nics = 0;           // of a node; 0: one a rank. Local rank l uses NIC l % nics
    int lanes = 1;          // so many NICs in place of each, to which chunks go in turn
    double link = 0;        // > 0, of one rank's pushes
    double link_alone = 0;  // of a rank to which nobody pushes meanwhile; 0: `link`
    double link_latency = 0;
    double small_latency = 0;     // likewise, of shards of up to
    std::size_t small_bytes = 0;  // this
    // Likewise, of those among them in which a rank pushes no more than this to its node, bytes and as
    // many for each block: publishes. 0: none is.
    double publish_latency = 0;
    std::size_t publish_space = 0, publish_block = 0;
    double copy_issue = 0;
    int streams = 1;
    double node = 0;       // of all pushes of a node together; 0: only `link` limits
    double own = 0;        // > 0, a copy inside a rank's memory
    double stage = 0;      // to and from the bounce buffer; 0: there is none
    bool engines = false;  // that copy, so that the ranks' cores do not
    double overhead = 0;
    // What the fallback module's calls cost more, their memory having to be the host's: at least, and
    // a rate; 0: nothing.
    double detour = 0, detour_rate = 0;
};

}  // namespace hier
