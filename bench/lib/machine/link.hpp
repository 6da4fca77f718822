// SPDX-License-Identifier: BSD-3-Clause
// What a node's network link carries: the B of the network bound.
#pragma once

#include "bench/lib/options/options.hpp"
#include "layout.hpp"

#include <mpi.h>

#include <string>

namespace bench {

struct Link {
    double rate = 0.0;   // bytes per second, node and direction; 0: not known
    std::string source;  // how it was found, for people
};

// Collective. Streams messages around the ring of nodes, so that every link carries full load in
// both directions at once. Tries eager and large messages, from one rank of each node and from as
// many as every node has (one stream can be limited by one core, many by having to share the
// cores), for a short time each; the best then streams for `seconds`, long enough that what a
// token bucket has saved up does not matter.
[[nodiscard]] Link measure_link(MPI_Comm comm, const Layout& layout, double seconds);

// The rate that the options ask for. Collective.
[[nodiscard]] Link find_link(MPI_Comm comm, const Layout& layout, const Options& options);

}  // namespace bench
