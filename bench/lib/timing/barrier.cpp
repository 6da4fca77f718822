// SPDX-License-Identifier: BSD-3-Clause
#include "barrier.hpp"

#include "bench/lib/machine/layout.hpp"

#include <algorithm>
#include <cstddef>

namespace bench {

Barrier::Barrier(MPI_Comm comm) : comm_(comm)
{
    MPI_Comm_rank(comm, &rank_);
    for (const std::vector<int>& ranks : find_layout(comm, 0).ranks_of) {
        leaders_.push_back(ranks.front());
        if (std::ranges::find(ranks, rank_) != ranks.end()) node_ = ranks;
    }
}

void Barrier::operator()() const
{
    disseminate(node_);
    if (leaders_.size() == 1) return;
    if (rank_ == node_.front()) disseminate(leaders_);
    disseminate(node_);
}

// The dissemination barrier (Hensgen, Finkel and Manber 1988): in each round a rank tells the one that
// is twice as far away as in the round before.
void Barrier::disseminate(const std::vector<int>& ranks) const
{
    constexpr int tag = 0;
    const std::size_t size = ranks.size();
    const auto place = static_cast<std::size_t>(std::ranges::find(ranks, rank_) - ranks.begin());
    for (std::size_t distance = 1; distance < size; distance *= 2) {
        const int to = ranks[(place + distance) % size];
        const int from = ranks[(place + size - distance) % size];
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, tag, nullptr, 0, MPI_BYTE, from, tag, comm_,
                     MPI_STATUS_IGNORE);
    }
}

}  // namespace bench
