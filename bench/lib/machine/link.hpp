// SPDX-License-Identifier: BSD-3-Clause
// The rate of a node's network link: the B of the network bound.
#pragma once

#include "bench/lib/options/options.hpp"
#include "layout.hpp"

#include <mpi.h>

#include <string>

namespace bench {

struct Link {
    double rate = 0.0;   // bytes per second, node and direction; 0: not known
    std::string source;  // how the rate was found, for people
};

// Collective. Streams messages around the ring of nodes, so that every link is full in both
// directions at once. Short trials use eager and large messages, from one rank of each node and from
// as many as every node has. One stream may be limited by its core, many streams share the cores.
// The best trial then streams for `seconds`, so that a full token bucket does not matter.
[[nodiscard]] Link measure_link(MPI_Comm comm, const Layout& layout, double seconds);

// Collective. The rate as the options say: not known, given or measured.
[[nodiscard]] Link find_link(MPI_Comm comm, const Layout& layout, const Options& options);

}  // namespace bench
