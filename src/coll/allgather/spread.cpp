// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/spread.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

// In bytes that move meanwhile.
class WaysOnNode {
public:
    WaysOnNode(const Sizes& sizes, std::size_t ranks, const SpreadCosts& costs)
        : sizes_(sizes), costs_(costs), peers_(ranks - 1), ring_chunk_(best_chunk())
    {
    }
    std::size_t ring_chunk() const { return ring_chunk_; }

    // The rank with the largest shard pushes it to all others.
    std::size_t plain() const { return peers_ * (sizes_.largest + costs_.put) + copied(); }
    // The bytes of a rank, the starts of chunks that have to be waited for, and the hops of the
    // last chunk. Meanwhile its owner can copy its shard.
    std::size_t ring() const
    {
        const std::size_t starts = sizes_.largest / ring_chunk_ * costs_.start;
        return sizes_.all - sizes_.least + starts + std::max(tail(), copied());
    }

private:
    // Makes starts and hops together least.
    std::size_t best_chunk() const
    {
        const double root =
            std::sqrt(static_cast<double>(sizes_.largest) * static_cast<double>(costs_.start) /
                      static_cast<double>(peers_ - 1));
        return std::max(costs_.unit, static_cast<std::size_t>(root));
    }
    std::size_t tail() const { return (peers_ - 1) * (ring_chunk_ + costs_.start); }
    std::size_t copied() const { return costs_.by_cores ? sizes_.largest : 0; }

    const Sizes& sizes_;
    const SpreadCosts& costs_;
    std::size_t peers_, ring_chunk_;
};

// If ranks push shards that differ, they meet at their receivers. That was seen to cost up to a
// fifth.
std::size_t meeting(std::size_t time, const Sizes& pushed)
{
    return std::min(time / 5, pushed.largest - pushed.least);
}

// Carriers should save an eighth. What they cost is known less well: where the model has them level
// with the ring, the ring was faster by a third (16 ranks, 1 to 64 MiB).
bool are_worth_it(std::size_t carriers, std::size_t other) { return carriers / 8 * 9 <= other; }

}  // namespace

AllgatherSpread::AllgatherSpread(const Topology& topology, std::span<const Extent> shards,
                                 const SpreadCosts& costs)
    : kept_(shards.begin(), shards.end())
{
    if (costs.unit == 0) return;
    if (topology.nodes() == 1) {
        spread_on_node(topology.ranks_on(0), costs);
        return;
    }
    handovers_.resize(static_cast<std::size_t>(topology.nodes()));
    for (int node = 0; node < topology.nodes(); node++) hand_over(topology, node, costs.unit);
}

void AllgatherSpread::spread_on_node(std::span<const int> ranks, const SpreadCosts& costs)
{
    if (ranks.size() < 3) return;
    const Sizes sizes(kept_, ranks);
    const WaysOnNode ways(sizes, ranks.size(), costs);
    const std::size_t plain = ways.plain() + meeting(ways.plain(), sizes);
    const bool is_ring = ways.ring() <= plain;
    if (is_ring) ring_chunk_ = ways.ring_chunk();

    std::vector<Extent> kept = kept_;
    Carriage carriage = carry_on_node(ranks, kept, costs);
    if (carriage.handovers.empty()) return;
    // Parts of one shard are pushed in an order in which few of them meet. Those of other shards
    // meet them. Two copy engines that do so get half the rate each.
    const std::size_t others = sizes.all - sizes.largest;
    const std::size_t met = costs.by_cores ? std::min(carriage.time / 5, others) : others;
    if (!are_worth_it(carriage.time + met, is_ring ? ways.ring() : plain)) return;
    ring_chunk_ = 0;
    kept_ = std::move(kept);
    handovers_.push_back(std::move(carriage.handovers));
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
