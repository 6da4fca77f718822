// SPDX-License-Identifier: BSD-3-Clause
// Where the blocks of all ranks lie in a buffer. The unit is an item of the buffer's datatype.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace hier_test {

// One entry for each rank. MPI_Allgatherv takes both lists.
struct Blocks {
    std::vector<int> items;
    std::vector<int> displacements;

    // As MPI_Allgather places them.
    static Blocks equal(int items, int blocks)
    {
        Blocks all;
        for (int block = 0; block < blocks; ++block) {
            all.items.push_back(items);
            all.displacements.push_back(block * items);
        }
        return all;
    }

    int total() const { return std::accumulate(items.begin(), items.end(), 0); }
};

// Places blocks from item `first` on. `order` has the ranks in the order of their blocks in memory.
// gap_before(rank) is the number of items that stay free before a rank's block.
template <class Gap>
Blocks place(std::vector<int> items, const std::vector<std::size_t>& order, int first,
             Gap gap_before)
{
    Blocks all{std::move(items), {}};
    all.displacements.resize(all.items.size());
    int at = first;
    for (const std::size_t rank : order) {
        at += gap_before(rank);
        all.displacements[rank] = at;
        at += all.items[rank];
    }
    return all;
}

// "3,0,5", for messages.
inline std::string listed(const std::vector<int>& numbers)
{
    std::string text;
    for (const int number : numbers) {
        text += (text.empty() ? "" : ",") + std::to_string(number);
    }
    return text;
}

}  // namespace hier_test
