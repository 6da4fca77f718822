// SPDX-License-Identifier: BSD-3-Clause
#include "level.hpp"

#include <algorithm>
#include <vector>

namespace bench {
namespace {

bool has(const Layout& layout, Part part)
{
    switch (part) {
    case Part::network:
        return layout.nodes() > 1 && layout.smallest_node() == layout.largest_node();
    case Part::links:
        return layout.largest_node() > 1;
    case Part::together:
        return true;
    }
    return false;
}

int color_of(const Layout& layout, Part part, int rank)
{
    const int node = layout.node_of[static_cast<std::size_t>(rank)];
    const std::vector<int>& here = layout.ranks_of[static_cast<std::size_t>(node)];
    switch (part) {
    case Part::network:
        return static_cast<int>(std::ranges::find(here, rank) - here.begin());
    case Part::links:
        return node;
    case Part::together:
        return 0;
    }
    return MPI_UNDEFINED;
}

}  // namespace

Level::Level(MPI_Comm whole, const Layout& layout, Part part)
    : part_(part), ranks_in_all_(layout.node_of.size()), exists_(has(layout, part))
{
    int rank = 0;
    MPI_Comm_rank(whole, &rank);
    MPI_Comm_split(whole, color_of(layout, part, rank), rank, &comm_);
    MPI_Comm_set_name(comm_, name());
    int ranks = 0;
    MPI_Comm_size(comm_, &ranks);
    ranks_ = static_cast<std::size_t>(ranks);
}

const char* Level::name() const
{
    switch (part_) {
    case Part::network:
        return "network";
    case Part::links:
        return "links";
    case Part::together:
        return "together";
    }
    return "";
}

std::size_t Level::shard_bytes(std::size_t bytes) const
{
    return part_ == Part::links ? (ranks_in_all_ * bytes + ranks_ - 1) / ranks_ : bytes;
}

}  // namespace bench
