// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace hier {
namespace {

// What a hop more costs, in units.
constexpr std::size_t hop = 3;

struct Sizes {
    std::size_t all = 0, largest = 0, least = SIZE_MAX, average = 0;

    Sizes(std::span<const Extent> shards, std::span<const int> ranks)
    {
        for (const int rank : ranks) {
            const std::size_t bytes = shards[static_cast<std::size_t>(rank)].length;
            all += bytes;
            largest = std::max(largest, bytes);
            least = std::min(least, bytes);
        }
        average = (all + ranks.size() - 1) / ranks.size();
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

    // The rank with the largest shard pushes it to all others. If ranks push shards that differ,
    // they meet at their receivers. That was seen to cost up to a fifth.
    std::size_t plain() const
    {
        const std::size_t time = peers_ * (sizes_.largest + costs_.put) + copied();
        const std::size_t differ =
            std::min(sizes_.largest - sizes_.least, sizes_.all - sizes_.largest);
        return time + std::min(time / 5, differ);
    }
    // The bytes of a rank, the starts of chunks that have to be waited for, and the hops of the
    // last chunk. Meanwhile its owner can copy its shard. Engines of 4 H200 had an eighth less than
    // their rate.
    std::size_t ring() const
    {
        const std::size_t bytes = sizes_.all - sizes_.least;
        const std::size_t starts = sizes_.largest / ring_chunk_ * costs_.start;
        return (costs_.by_cores ? bytes : bytes / 8 * 9) + starts + std::max(tail(), copied());
    }
    // The handovers of the busiest owner or carrier, and then equal pushes. These wait for the
    // handovers and then for what owners tell. The more is carried, the less even the turns are.
    std::size_t balanced() const
    {
        const std::size_t handed =
            std::max(sizes_.largest - sizes_.average, sizes_.average - sizes_.least);
        return handed / 5 * 7 + 2 * costs_.start + peers_ * (sizes_.average + costs_.put);
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

    const Sizes sizes_;
    const SpreadCosts& costs_;
    std::size_t peers_, ring_chunk_;
};

// Handovers should save an eighth. What they cost is known less well: where the model has carriers
// level with the ring, the ring was faster by a third (16 ranks, 1 to 64 MiB).
bool is_worth_it(std::size_t time, std::size_t other) { return time / 8 * 9 <= other; }

std::size_t index_of_largest(const std::vector<std::size_t>& all)
{
    return static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin());
}

// Carriers stand behind the owner, those of the largest parts first.
std::vector<int> turns_of(std::span<const int> ranks, std::vector<Handover> handovers)
{
    std::stable_sort(handovers.begin(), handovers.end(), [](const Handover& a, const Handover& b) {
        return a.part.length > b.part.length;
    });
    std::vector<int> turns;
    std::map<int, std::ptrdiff_t> behind;  // the carriers that stand behind an owner
    const auto place_of = [&](int rank) { return std::find(turns.begin(), turns.end(), rank); };
    for (const Handover& h : handovers) {
        if (place_of(h.owner) == turns.end()) turns.push_back(h.owner);
        if (place_of(h.carrier) == turns.end())
            turns.insert(place_of(h.owner) + ++behind[h.owner], h.carrier);
    }
    for (const int rank : ranks)
        if (place_of(rank) == turns.end()) turns.push_back(rank);
    return turns;
}

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
    for (int node = 0; node < topology.nodes(); node++)
        hand_over(topology.ranks_on(node), costs.unit, handovers_[static_cast<std::size_t>(node)]);
}

void AllgatherSpread::spread_on_node(std::span<const int> ranks, const SpreadCosts& costs)
{
    if (ranks.size() < 3) return;
    const WaysOnNode ways(Sizes(kept_, ranks), ranks.size(), costs);
    if (ways.ring() <= ways.plain()) ring_chunk_ = ways.ring_chunk();
    if (costs.by_cores) return carry(ranks, costs, std::min(ways.ring(), ways.plain()));
    if (ways.balanced() > ways.ring() || !is_worth_it(ways.balanced(), ways.plain())) return;
    std::vector<Handover> handovers;
    hand_over(ranks, costs.grain, handovers);
    if (handovers.empty()) return;
    ring_chunk_ = 0;
    turns_ = turns_of(ranks, handovers);
    handovers_.push_back(std::move(handovers));
}

void AllgatherSpread::carry(std::span<const int> ranks, const SpreadCosts& costs,
                            std::size_t other_way)
{
    std::vector<Extent> kept = kept_;
    Carriage carriage = carry_on_node(ranks, kept, costs);
    // Parts of one shard are pushed in an order in which few of them meet. Those of other shards
    // meet them.
    const Sizes sizes(kept_, ranks);
    const std::size_t met = std::min(carriage.time / 5, sizes.all - sizes.largest);
    if (carriage.handovers.empty() || !is_worth_it(carriage.time + met, other_way)) return;
    ring_chunk_ = 0;
    kept_ = std::move(kept);
    handovers_.push_back(std::move(carriage.handovers));
}

// Every rank should send the average. The largest excess goes to the rank with the most room.
void AllgatherSpread::hand_over(std::span<const int> ranks, std::size_t unit,
                                std::vector<Handover>& handovers)
{
    const Sizes sizes(kept_, ranks);
    if (sizes.largest < sizes.average + hop * unit) return;
    const auto kept = [&](std::size_t i) -> Extent& {
        return kept_[static_cast<std::size_t>(ranks[i])];
    };
    std::vector<std::size_t> excess, room;
    for (std::size_t i = 0; i < ranks.size(); i++) {
        excess.push_back(kept(i).length - std::min(kept(i).length, sizes.average));
        room.push_back(sizes.average - std::min(sizes.average, kept(i).length));
    }
    while (true) {
        const std::size_t owner = index_of_largest(excess), carrier = index_of_largest(room);
        const std::size_t bytes = std::min(excess[owner], room[carrier]) / unit * unit;
        if (bytes == 0) return;
        Extent& rest = kept(owner);
        rest.length -= bytes;  // the last bytes of the shard go first
        handovers.push_back({ranks[owner], ranks[carrier], {rest.offset + rest.length, bytes}});
        excess[owner] -= bytes;
        room[carrier] -= bytes;
    }
}

}  // namespace hier
