// SPDX-License-Identifier: BSD-3-Clause
// Which ranks share a node.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct Layout {
    std::vector<int> node_of;                // rank -> node, nodes numbered by first rank
    std::vector<std::vector<int>> ranks_of;  // node -> its ranks, ascending

    [[nodiscard]] int nodes() const { return static_cast<int>(ranks_of.size()); }
    [[nodiscard]] int ranks() const { return static_cast<int>(node_of.size()); }
    [[nodiscard]] std::size_t smallest_node() const;
    [[nodiscard]] std::size_t largest_node() const;

    // Bytes that must enter the busiest node if each rank contributes `bytes`.
    [[nodiscard]] double bytes_entering(std::size_t bytes) const;

    [[nodiscard]] std::string text() const;  // "4+4"
};

// Pure. A host name is a node. ranks_per_node > 0 cuts each host into virtual nodes.
[[nodiscard]] Layout make_layout(const std::vector<std::string>& host_of, int ranks_per_node);

// Collective. Every rank gets the same layout. Uses gather and broadcast, because the bench must not
// depend on the call that it measures.
[[nodiscard]] Layout find_layout(MPI_Comm comm, int ranks_per_node);

}  // namespace bench
