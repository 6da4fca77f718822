// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/spread.hpp"

#include <algorithm>
#include <cmath>

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

// Bytes that move in the time of a ring: those of a rank, the starts of its chunks, and the hops of
// the last chunk.
std::size_t ring_bytes(const Sizes& sizes, std::size_t hops, std::size_t start, std::size_t chunk)
{
    return sizes.all - sizes.least + sizes.all / chunk * start + hops * (chunk + start);
}

// Makes starts and hops together least.
std::size_t best_chunk(const Sizes& sizes, std::size_t hops, const SpreadCosts& costs)
{
    const double root = std::sqrt(static_cast<double>(sizes.largest) *
                                  static_cast<double>(costs.start) / static_cast<double>(hops));
    return std::max(costs.unit, static_cast<std::size_t>(root));
}

// 0: the other way is faster. There the rank with the largest shard pushes it to all others. If
// shards differ, ranks meet at their receivers, which was seen to cost up to a fifth.
std::size_t ring_chunk_for(const Sizes& sizes, std::size_t ranks, const SpreadCosts& costs)
{
    if (ranks < 3) return 0;
    const std::size_t direct = sizes.largest * (ranks - 1);
    const std::size_t chunk = best_chunk(sizes, ranks - 2, costs);
    const std::size_t ring = ring_bytes(sizes, ranks - 2, costs.start, chunk);
    const std::size_t meeting = std::min(direct / 5, sizes.largest - sizes.least);
    return ring <= direct + meeting ? chunk : 0;
}

}  // namespace

AllgatherSpread::AllgatherSpread(const Topology& topology, std::span<const Extent> shards,
                                 const SpreadCosts& costs)
    : kept_(shards.begin(), shards.end())
{
    if (costs.unit == 0) return;
    if (topology.nodes() == 1) {
        const auto ranks = topology.ranks_on(0);
        ring_chunk_ = ring_chunk_for(Sizes(kept_, ranks), ranks.size(), costs);
        return;
    }
    handovers_.resize(static_cast<std::size_t>(topology.nodes()));
    for (int node = 0; node < topology.nodes(); node++) hand_over(topology, node, costs.unit);
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
