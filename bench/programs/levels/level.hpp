// SPDX-License-Identifier: BSD-3-Clause
// An allgather of S bytes a rank taken apart: what crosses the network, and what moves inside nodes.
//
//        node 0          node 1
//       0 ---- 1        2 ---- 3      links: {0,1} and {2,3} at once
//       |      |        |      |
//       +------|--------+      |      network: {0,2} and {1,3} at once
//              +---------------+
//
// network: the rails, one rank of each node, S bytes a rank: as in the whole, (N-1)*S arrive at each
//   rank by the network. Uneven nodes have no such parts: an allgather gives each of its ranks as
//   many bytes as every other, and there the smallest node needs more than the rest.
// links: the nodes, in place, P*S/G bytes on each of the G ranks of a node (N*S where nodes are
//   alike): as in the whole, each of the node's ranks gets all but 1/G of P*S bytes from the others.
//   In place, because the whole copies only S bytes of its own on each rank, not P*S/G.
#pragma once

#include "bench/lib/machine/layout.hpp"

#include <mpi.h>

#include <cstddef>

namespace bench {

enum class Part { network, links, together };

class Level {
public:
    // Collective on `whole`, the communicator of the layout.
    Level(MPI_Comm whole, const Layout& layout, Part part);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { MPI_Comm_free(&comm_); }

    [[nodiscard]] const char* name() const;
    // This rank's communicator, of that name.
    [[nodiscard]] MPI_Comm comm() const { return comm_; }
    // Whether there is anything to measure; the same on all ranks.
    [[nodiscard]] bool exists() const { return exists_; }
    // Whether this rank has a part in it: on nodes of one rank there are no links.
    [[nodiscard]] bool has_peers() const { return exists_ && ranks_ > 1; }

    [[nodiscard]] bool is_in_place() const { return part_ == Part::links; }
    // What each rank of comm() contributes where each of the whole contributes `bytes`.
    [[nodiscard]] std::size_t shard_bytes(std::size_t bytes) const;
    [[nodiscard]] std::size_t receive_bytes(std::size_t bytes) const
    {
        return ranks_ * shard_bytes(bytes);
    }

private:
    Part part_;
    std::size_t ranks_in_all_;
    bool exists_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    std::size_t ranks_ = 0;
};

}  // namespace bench
