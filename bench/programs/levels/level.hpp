// SPDX-License-Identifier: BSD-3-Clause
// The two levels of an allgather of S bytes a rank, each alone, and both together.
//
//        node 0          node 1
//       0 ---- 1        2 ---- 3      links: {0,1} and {2,3} at once
//       |      |        |      |
//       +------|--------+      |      network: {0,2} and {1,3} at once
//              +---------------+
//
// N nodes, G ranks on a node, P ranks in all.
//
// network: one allgather on each rail, S bytes a rank. As in the whole call, (N-1)*S bytes come to
//   each rank by the network. Uneven nodes have no such level: their smallest node needs more bytes
//   than the others, and an allgather gives all its ranks the same number.
// links: one allgather on each node, in place, P*S/G bytes a rank. As in the whole call, each rank
//   gets all but 1/G of P*S bytes from the others of its node. In place, because the whole call
//   copies only S bytes of its own on each rank, not P*S/G.
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
    // This rank's communicator. It has the name above.
    [[nodiscard]] MPI_Comm comm() const { return comm_; }
    // Is there anything to measure? The same on all ranks.
    [[nodiscard]] bool exists() const { return exists_; }
    // Does this rank take part? A node of one rank has no links.
    [[nodiscard]] bool has_peers() const { return exists_ && ranks_ > 1; }

    [[nodiscard]] bool is_in_place() const { return part_ == Part::links; }
    // Bytes that each rank of comm() contributes if each rank of the whole contributes `bytes`.
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
