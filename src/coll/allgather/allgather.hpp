// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather and MPI_Allgatherv as the core knows them: a shard of each rank. They may have
// different sizes.
#pragma once

#include "coll/allgather/cost.hpp"
#include "coll/allgather/plan.hpp"
#include "coll/common/collective.hpp"

namespace hier {

class Allgather final : public Collective {
public:
    Allgather(const Topology& topology, const Rates& rates)
        : topology_(topology), cost_(topology, rates), spread_(spread_costs(topology, rates)),
          shared_result_(topology.nodes() == 1 ? rates.shared_result : 0)
    {
    }
    static std::unique_ptr<Collective> make(const Topology& topology, const Rates& rates)
    {
        return std::make_unique<Allgather>(topology, rates);
    }

    const char* name() const override { return "allgather"; }
    bool eligible(std::size_t bytes) const override { return bytes > 0; }
    Choice choose(std::size_t bytes, const Constraints& constraints) const override;
    Plan plan(const PlanInput& input) const override;
    StagedBlocks staged_blocks(Route route) const override;
    bool takes_displacements(const Choice& choice, bool are_equal) const override;
    Cost cost(std::size_t bytes, const Constraints& constraints) const override;
    std::vector<Choice> alternatives(std::size_t bytes,
                                     const Constraints& constraints) const override;

private:
    Constraints countable(std::size_t bytes, Constraints constraints) const;
    static SpreadCosts spread_costs(const Topology& topology, const Rates& rates);

    const Topology& topology_;
    AllgatherCost cost_;
    SpreadCosts spread_;
    std::size_t shared_result_;  // Rates::shared_result, if all ranks are on one node
};

}  // namespace hier
