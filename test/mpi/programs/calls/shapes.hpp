// SPDX-License-Identifier: BSD-3-Clause
// Shapes of the counts of MPI_Allgatherv, and layouts of its receive buffer.
#pragma once

#include "test/mpi/lib/blocks.hpp"
#include "test/mpi/lib/pattern.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>

namespace hier_test {

using Numbers = std::vector<int>;

// Bytes of each rank. `n` is the average, more or less.
struct Shape {
    const char* name;
    std::function<int(int rank, int ranks, int n)> bytes;

    Numbers counts(int ranks, int n) const
    {
        Numbers all;
        for (int rank = 0; rank < ranks; ++rank) {
            all.push_back(bytes(rank, ranks, n));
        }
        return all;
    }
};

inline std::vector<Shape> make_shapes(std::uint64_t seed)
{
    const auto random = [seed](int rank, int ranks, int n) {
        const auto key = static_cast<std::uint64_t>(n) * 100 + static_cast<std::uint64_t>(ranks);
        return static_cast<int>(
            pick(mix(seed, key), static_cast<std::uint64_t>(rank), 2U * static_cast<unsigned>(n)));
    };
    return {
        {"equal", [](int, int, int n) { return n; }},
        {"growing",
         [](int rank, int ranks, int n) { return (rank + 1) * (2 * n / (ranks + 1) + 1); }},
        {"falling",
         [](int rank, int ranks, int n) { return (ranks - rank) * (2 * n / (ranks + 1) + 1); }},
        {"random", random},
        {"all on rank 0", [](int rank, int ranks, int n) { return rank == 0 ? n * ranks : 0; }},
        {"all on rank 1",
         [](int rank, int ranks, int n) { return rank == 1 % ranks ? n * ranks : 0; }},
        {"one byte beside a large block",
         [](int rank, int ranks, int n) { return rank == ranks - 1 ? n * ranks : 1; }},
        {"odd ranks empty", [](int rank, int, int n) { return rank % 2 == 0 ? 2 * n : 0; }},
        {"rank 0 empty", [](int rank, int, int n) { return rank == 0 ? 0 : n; }},
        {"last rank empty", [](int rank, int ranks, int n) { return rank == ranks - 1 ? 0 : n; }},
        {"all empty", [](int, int, int) { return 0; }},
    };
}

// How the blocks of all ranks are spread over a receive buffer.
enum class Spread { packed, backwards, gaps, shuffled_gaps, before_address, differs };
inline constexpr unsigned number_of_spreads = 6;
inline constexpr const char* names_of_spreads[number_of_spreads] = {
    "packed",
    "packed backwards",
    "gaps",
    "shuffled gaps",
    "blocks before the buffer address",
    "another one on each rank"};

inline constexpr std::initializer_list<Spread> all_spreads = {
    Spread::packed,        Spread::backwards,      Spread::gaps,
    Spread::shuffled_gaps, Spread::before_address, Spread::differs};

inline std::vector<std::size_t> shuffled(std::size_t ranks, std::uint64_t seed)
{
    std::vector<std::size_t> order(ranks);
    std::iota(order.begin(), order.end(), 0UL);
    for (std::size_t i = ranks; i > 1; --i) {
        std::swap(order[i - 1], order[pick(seed, i, static_cast<unsigned>(i))]);
    }
    return order;
}

// Where there are gaps, an empty block may be anywhere, outside the buffer, too.
inline Blocks spread_out(Spread spread, Numbers counts, std::uint64_t seed)
{
    if (spread == Spread::differs) {
        const unsigned other = pick(seed, 1, static_cast<unsigned>(Spread::differs));
        return spread_out(static_cast<Spread>(other), std::move(counts), seed);
    }
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0UL);
    if (spread == Spread::backwards) std::reverse(order.begin(), order.end());
    if (spread == Spread::shuffled_gaps) order = shuffled(order.size(), seed);
    const bool has_gaps = spread != Spread::packed && spread != Spread::backwards;
    const int total = std::accumulate(counts.begin(), counts.end(), 0);
    const int first = spread == Spread::before_address ? -total / 2 - 40 : 0;
    Blocks blocks = place(std::move(counts), order, first, [&](std::size_t rank) {
        return has_gaps ? static_cast<int>(pick(seed + 2, rank, 100)) : 0;
    });
    for (std::size_t rank = 0; rank < order.size() && has_gaps; ++rank) {
        if (blocks.items[rank] == 0) blocks.displacements[rank] = rank % 2 == 0 ? -70001 : 1 << 30;
    }
    return blocks;
}

}  // namespace hier_test
