// SPDX-License-Identifier: BSD-3-Clause
// Random traffic between the ranks of a node, as an allgather makes it: every byte of a buffer has
// one owner, who puts it to all others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forked.hpp"
#include "node/node_transport.hpp"

namespace hier::test {

// All ranks make the same one from the same seed.
struct Traffic {
    struct Piece {
        int owner;
        Extent slice;
    };
    std::size_t length = 0;
    std::vector<Extent> shards;  // of each rank: what its send buffer holds
    std::vector<Piece> pieces;   // within shards, and behind them
};

// `sizes`: the lengths of the pieces, drawn at random.
Traffic make_traffic(std::uint64_t seed, int ranks, std::size_t pieces,
                     const std::vector<std::size_t>& sizes);

// Runs a call of this rank until all that it puts is taken and all that it awaits is there; then
// compares the bytes. "" or what is wrong.
std::string run_traffic(Transport& transport, const ForkedRank& self, const Traffic& traffic,
                        std::uint64_t sequence);

// With this process's own pid exchanged in the group.
std::unique_ptr<NodeTransport> make_transport(const ForkedRank& self, int intra);

}  // namespace hier::test
