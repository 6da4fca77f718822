// SPDX-License-Identifier: BSD-3-Clause
// A plan that can be changed: each operation carries its own dependencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hier/plan.hpp"

namespace hier::model {

struct DraftOp {
    Op op;
    std::vector<std::uint32_t> after;
};

class Draft {
public:
    explicit Draft(const Plan& plan);

    Plan plan() const;
    DraftOp& at(std::size_t i) { return ops_[i]; }

    // Removes an operation. Operations that depended on it lose that dependency. Later puts of its
    // pair move up by one, so that the counts have no gap.
    void remove(std::size_t i);
    // Adds the operation once more, at the end of the plan and of its pair.
    void repeat(std::size_t i);

    std::size_t bounce_bytes;
    std::vector<BouncePlace> bounce_places;

private:
    std::vector<DraftOp> ops_;
};

bool equal(const Plan& a, const Plan& b);

// By operation: does another one depend on it?
std::vector<bool> depended_on(const Plan& plan);

}  // namespace hier::model
