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

}  // namespace hier
