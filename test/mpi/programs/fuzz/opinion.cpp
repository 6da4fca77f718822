// SPDX-License-Identifier: BSD-3-Clause
#include "opinion.hpp"

namespace hier_test::fuzz {

std::string second_opinion(MPI_Comm comm, const TypedBuffer& buffer, int block,
                           const std::vector<std::size_t>& sizes, int root, int call)
{
    std::vector<int> counts;
    std::vector<int> places;
    int total = 0;
    for (const std::size_t size : sizes) {
        counts.push_back(static_cast<int>(size));
        places.push_back(total);
        total += counts.back();
    }
    Content mine(sizes[static_cast<std::size_t>(rank_of(comm))]);
    Content all(static_cast<std::size_t>(total));
    buffer.pack_image(block, mine, comm);
    MPI_Gatherv(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, all.data(), counts.data(),
                places.data(), MPI_BYTE, root, comm);
    MPI_Bcast(all.data(), total, MPI_BYTE, root, comm);
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        const auto wrong =
            Pattern(static_cast<int>(rank), call).mismatch(all.data() + places[rank], sizes[rank]);
        if (wrong) {
            return "the second opinion differs in block " + std::to_string(rank) + ", byte " +
                   std::to_string(*wrong);
        }
    }
    return {};
}

}  // namespace hier_test::fuzz
