// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/spread.hpp"

#include <algorithm>

namespace hier {
namespace {

// What a hop more costs, in units.
constexpr std::size_t hop = 3;

struct Sizes {
    std::size_t all = 0, largest = 0, least = SIZE_MAX;

    Sizes(std::span<const Extent> shards, std::span<const int> ranks)
    {
        for (const int rank : ranks) {
            const std::size_t bytes = shards[static_cast<std::size_t>(rank)].length;
            all += bytes;
            largest = std::max(largest, bytes);
            least = std::min(least, bytes);
        }
    }
};

// Without a ring the rank with the largest shard pushes it to all others. In a ring a rank sends all
// but its right neighbour's shard, and the last bytes make a hop for each rank.
bool is_worth_a_ring(const Sizes& sizes, std::size_t ranks, std::size_t unit)
{
    return ranks > 2 &&
           sizes.largest * (ranks - 1) >= sizes.all - sizes.least + hop * unit * (ranks - 2);
}

}  // namespace

AllgatherSpread::AllgatherSpread(const Topology& topology, std::span<const Extent> shards,
                                 std::size_t unit)
    : kept_(shards.begin(), shards.end())
{
    if (unit == 0) return;
    if (topology.nodes() == 1) {
        const auto ranks = topology.ranks_on(0);
        is_ring_ = is_worth_a_ring(Sizes(kept_, ranks), ranks.size(), unit);
        return;
    }
    handovers_.resize(static_cast<std::size_t>(topology.nodes()));
    for (int node = 0; node < topology.nodes(); node++) hand_over(topology, node, unit);
}

// Every rank should send the average.
void AllgatherSpread::hand_over(const Topology& topology, int node, std::size_t unit)
{
    const std::span<const int> ranks = topology.ranks_on(node);
    const auto kept = [&](int rank) -> Extent& { return kept_[static_cast<std::size_t>(rank)]; };
    const Sizes sizes(kept_, ranks);
    const std::size_t average = (sizes.all + ranks.size() - 1) / ranks.size();
    if (sizes.largest < average + hop * unit) return;
    std::vector<std::size_t> room;
    for (const int rank : ranks) room.push_back(average - std::min(average, kept(rank).length));
    std::size_t next = 0;  // the carrier
    for (const int owner : ranks) {
        Extent& rest = kept(owner);
        // The last bytes of the shard go first.
        std::size_t left = (rest.length - std::min(average, rest.length)) / unit * unit;
        while (left > 0 && next < room.size()) {
            const std::size_t bytes = std::min(left, room[next] / unit * unit);
            if (bytes == 0) {
                next++;
                continue;
            }
            rest.length -= bytes;
            handovers_[static_cast<std::size_t>(node)].push_back(
                {owner, ranks[next], {rest.offset + rest.length, bytes}});
            room[next] -= bytes;
            left -= bytes;
        }
    }
}

}  // namespace hier
