// SPDX-License-Identifier: BSD-3-Clause
#include "shares.hpp"

#include <algorithm>
#include <numeric>

namespace hier_test::fuzz {

namespace {

// The most items that are free before a block.
constexpr int max_gap = 16;

std::size_t draw_quantum(Random& common, std::size_t units)
{
    return common.one_in(2) ? 1 : common.between(1, 1 + units / 4);
}

Shares random_shares(Random& common, std::size_t ranks, std::size_t units, bool some_are_empty)
{
    Shares shares{some_are_empty ? "some empty" : "random", draw_quantum(common, units), {}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const bool is_empty = some_are_empty && common.one_in(2);
        shares.quanta.push_back(is_empty ? 0 : common.between(0, 2 * units / shares.quantum));
    }
    return shares;
}

Shares one_large_share(Random& common, std::size_t ranks, std::size_t units)
{
    Shares shares{"one large", draw_quantum(common, units), std::vector<std::size_t>(ranks, 0)};
    shares.quanta[common.between(0, ranks - 1)] = ranks * units / shares.quantum;
    return shares;
}

Shares growing_shares(std::size_t ranks, std::size_t units)
{
    Shares shares{"growing", std::max<std::size_t>(1, 2 * units / (ranks + 1)),
                  std::vector<std::size_t>(ranks)};
    std::iota(shares.quanta.begin(), shares.quanta.end(), 1UL);
    return shares;
}

Shares equal_shares(std::size_t ranks, std::size_t units)
{
    return {"equal", units, std::vector<std::size_t>(ranks, 1)};
}

Shares draw(Random& common, std::size_t ranks, std::size_t units)
{
    if (units == 0) {
        return {"all empty", 1, std::vector<std::size_t>(ranks, 0)};
    }
    switch (common.below(16)) {
    case 0:
    case 1:
    case 2:
        return equal_shares(ranks, units);
    case 3:
    case 4:
        return growing_shares(ranks, units);
    case 5:
    case 6:
        return one_large_share(common, ranks, units);
    case 7:
    case 8: {
        Shares shares = equal_shares(ranks, units);
        shares.name = "one empty";
        shares.quanta[common.between(0, ranks - 1)] = 0;
        return shares;
    }
    case 9:
    case 10:
        return random_shares(common, ranks, units, true);
    default:
        return random_shares(common, ranks, units, false);
    }
}

int draw_gap(Random& random, int most)
{
    return random.one_in(2) ? 0 : 1 + random.number_below(most);
}

}  // namespace

std::size_t Shares::total() const { return std::accumulate(quanta.begin(), quanta.end(), 0UL); }

Shares draw_shares(Random& common, int ranks, std::size_t units, std::size_t most)
{
    Shares shares = draw(common, static_cast<std::size_t>(ranks), units);
    shares.quantum = std::min(shares.quantum, std::max<std::size_t>(1, most));
    for (std::size_t& quanta : shares.quanta) {
        quanta = std::min(quanta, most / shares.quantum);
    }
    return shares;
}

int room_for(const Shares& shares)
{
    return static_cast<int>(shares.total() + shares.quanta.size() * max_gap);
}

Blocks draw_blocks(Random& random, const Shares& shares, const Form& form)
{
    // Large items get small gaps.
    constexpr std::ptrdiff_t max_gap_bytes = 65536;
    constexpr int far = (1 << 30) - 1;
    const auto extent = std::max<std::ptrdiff_t>(1, form.layout.extent());
    const int gap =
        static_cast<int>(std::clamp<std::ptrdiff_t>(max_gap_bytes / extent, 1, max_gap));
    std::vector<int> items;
    for (const std::size_t quanta : shares.quanta) {
        items.push_back(static_cast<int>(quanta) * form.items);
    }
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), 0UL);
    if (!random.one_in(3)) shuffle(random, order);
    const bool has_gaps = random.one_in(2);
    const int first = random.one_in(3) ? random.number_below(2000) - 1000 : 0;
    Blocks blocks = place(std::move(items), order, first,
                          [&](std::size_t) { return has_gaps ? draw_gap(random, gap) : 0; });
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        if (blocks.items[rank] == 0 && random.one_in(3)) {
            blocks.displacements[rank] = random.number_below(2 * far - 1) - far;
        }
    }
    return blocks;
}

}  // namespace hier_test::fuzz
