// SPDX-License-Identifier: BSD-3-Clause
// Random traffic between the ranks of a node, as an allgather makes it: every byte of a buffer has
// one owner, which puts it to all other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forked.hpp"
#include "node/node_transport.hpp"

namespace hier::test {

// The same seed gives the same traffic on all ranks.
struct Traffic {
    struct OwnedExtent {
        int owner;
        Extent extent;
    };
    std::size_t length = 0;
    std::vector<Extent> shards;        // of each rank: what its send buffer holds
    std::vector<OwnedExtent> extents;  // within shards, and behind them
    // Each rank has the extents in an order of its own in its receive buffer, with gaps.
    bool are_displaced = false;
};

// A rank owns at least `extents` extents. Their lengths are drawn at random from `sizes`.
Traffic make_traffic(std::uint64_t seed, int ranks, std::size_t extents,
                     const std::vector<std::size_t>& sizes);

// Runs a call of this rank until its puts are done and the puts of the others have arrived. Then it
// compares the bytes. Returns "" or what is wrong.
std::string run_traffic(Transport& transport, const ForkedRank& self, const Traffic& traffic,
                        std::uint64_t sequence);

// Exchanges the processes in the group first.
std::unique_ptr<NodeTransport> make_transport(const ForkedRank& self, int intra,
                                              bool share_cores = false);
// The same of ranks that are all of their team. Two of them lend large blocks.
std::unique_ptr<NodeTransport> make_whole_transport(const ForkedRank& self);
// As make_transport, with words as on a node of many ranks, and with the smallest cells and halves. Both have
// room for the displacements of `max_extents` extents.
inline constexpr int max_extents = 600;
std::unique_ptr<NodeTransport> make_packed_transport(const ForkedRank& self, bool has_cma);

// The words of the shared mappings that the core has made in this process.
std::vector<std::span<std::uint64_t>> shared_memory();

}  // namespace hier::test
