// SPDX-License-Identifier: BSD-3-Clause
#include "hier/plan.hpp"

namespace hier {

std::uint32_t Plan::append(Op op, const std::vector<std::uint32_t>& after)
{
    op.first_dependency = static_cast<std::uint32_t>(dependencies.size());
    op.dependencies = static_cast<std::uint32_t>(after.size());
    dependencies.insert(dependencies.end(), after.begin(), after.end());
    ops.push_back(op);
    return static_cast<std::uint32_t>(ops.size() - 1);
}

std::vector<Slice> equal_shards(int ranks, std::size_t bytes_per_rank)
{
    std::vector<Slice> shards;
    shards.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; r++)
        shards.push_back({static_cast<std::size_t>(r) * bytes_per_rank, bytes_per_rank});
    return shards;
}

}  // namespace hier
