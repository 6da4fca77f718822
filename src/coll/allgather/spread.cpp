// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/spread.hpp"

#include <algorithm>

namespace hier {
namespace {

// What the ranks of a node should hand over, and may carry, in bytes.
struct Share {
    std::size_t surplus = 0, room = 0;
};

// Every rank should have the average.
Share share_of_network(std::size_t bytes, std::size_t all, std::size_t ranks)
{
    const std::size_t average = (all + ranks - 1) / ranks;
    if (bytes > average) return {.surplus = bytes - average};
    return {.room = average - bytes};
}

// No rank should push more than `most` bytes. Of a byte that it hands over a rank saves `ranks` - 2
// pushes, and such a byte costs its carrier as many.
Share share_of_node(std::size_t bytes, std::size_t most, std::size_t ranks)
{
    if (ranks < 3) return {};
    const std::size_t pushed = bytes * (ranks - 1), saved = ranks - 2;
    if (pushed > most) return {.surplus = std::min(bytes, (pushed - most + saved - 1) / saved)};
    return {.room = (most - pushed) / saved};
}

}  // namespace

AllgatherSpread::AllgatherSpread(const Topology& topology, std::span<const Extent> shards,
                                 std::size_t unit)
    : kept_(shards.begin(), shards.end())
{
    if (unit == 0) return;
    handovers_.resize(static_cast<std::size_t>(topology.nodes()));
    for (int node = 0; node < topology.nodes(); node++) spread(topology, node, unit);
}

void AllgatherSpread::spread(const Topology& topology, int node, std::size_t unit)
{
    const std::span<const int> ranks = topology.ranks_on(node);
    const auto kept = [&](int rank) -> Extent& { return kept_[static_cast<std::size_t>(rank)]; };
    std::size_t all = 0, largest = 0, least = kept(ranks[0]).length;
    for (const int rank : ranks) {
        all += kept(rank).length;
        least = std::min(least, kept(rank).length);
        largest = std::max(largest, kept(rank).length);
    }
    const std::size_t peers = ranks.size() - 1;
    const std::size_t most = std::max(all - least, (all * peers + peers) / ranks.size());
    const bool is_node = topology.nodes() == 1;
    const std::size_t direct = is_node ? largest * peers : largest;
    const std::size_t spread = is_node ? most : all / ranks.size();
    if (direct < spread + worth * unit) return;
    std::vector<Share> shares;
    for (const int rank : ranks) {
        const std::size_t bytes = kept(rank).length;
        shares.push_back(is_node ? share_of_node(bytes, most, ranks.size())
                                 : share_of_network(bytes, all, ranks.size()));
    }
    std::size_t next = 0;  // the carrier
    for (std::size_t i = 0; i < shares.size(); i++) {
        // The last bytes of the shard go first.
        std::size_t left = shares[i].surplus / unit * unit;
        while (left > 0 && next < shares.size()) {
            const std::size_t bytes = std::min(left, shares[next].room / unit * unit);
            if (bytes == 0) {
                next++;
                continue;
            }
            Extent& rest = kept(ranks[i]);
            rest.length -= bytes;
            handovers_[static_cast<std::size_t>(node)].push_back(
                {ranks[i], ranks[next], {rest.offset + rest.length, bytes}});
            shares[next].room -= bytes;
            left -= bytes;
        }
    }
}

}  // namespace hier
