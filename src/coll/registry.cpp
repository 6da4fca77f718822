// SPDX-License-Identifier: BSD-3-Clause
#include "coll/registry.hpp"

#include "coll/allgather/allgather.hpp"
#include "coll/allgather/routing.hpp"

namespace hier {

std::span<const MakeCollective> shipped_collectives()
{
    static constexpr MakeCollective all[] = {Allgather::make};
    return all;
}

std::vector<bool> rail_partners(const Topology& topology, int rank)
{
    return allgather_partners(topology, rank);
}

}  // namespace hier
