// SPDX-License-Identifier: BSD-3-Clause
#include "draft.hpp"

#include <algorithm>

namespace hier::model {

Draft::Draft(const Plan& plan) : bounce_bytes(plan.bounce_bytes), bounce_places(plan.bounce_places)
{
    for (const Op& op : plan.ops) {
        const auto after = plan.dependencies_of(op);
        ops_.push_back({op, {after.begin(), after.end()}});
    }
}

Plan Draft::plan() const
{
    Plan plan;
    plan.bounce_bytes = bounce_bytes;
    plan.bounce_places = bounce_places;
    for (const DraftOp& draft : ops_) plan.append(draft.op, draft.after);
    return plan;
}

void Draft::remove(std::size_t i)
{
    const Op gone = ops_[i].op;
    ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(i));
    for (DraftOp& draft : ops_) {
        std::erase(draft.after, static_cast<std::uint32_t>(i));
        for (auto& d : draft.after) d -= d > i ? 1 : 0;
        const bool same_pair = gone.kind == Op::Kind::put && draft.op.kind == Op::Kind::put &&
                               draft.op.level == gone.level && draft.op.peer == gone.peer;
        if (same_pair && draft.op.count > gone.count) draft.op.count--;
    }
}

void Draft::repeat(std::size_t i)
{
    DraftOp again = ops_[i];
    for (const DraftOp& draft : ops_) {
        const bool same_pair = draft.op.kind == Op::Kind::put && draft.op.level == again.op.level &&
                               draft.op.peer == again.op.peer;
        if (same_pair) again.op.count = std::max(again.op.count, draft.op.count + 1);
    }
    ops_.push_back(again);
}

bool equal(const Plan& a, const Plan& b)
{
    const auto same = [](const Op& x, const Op& y) {
        return x.kind == y.kind && x.level == y.level && x.from == y.from && x.to == y.to &&
               x.peer == y.peer && x.count == y.count && x.slice == y.slice &&
               x.packed == y.packed && x.first_dependency == y.first_dependency &&
               x.dependencies == y.dependencies;
    };
    return a.dependencies == b.dependencies && a.bounce_bytes == b.bounce_bytes &&
           a.bounce_places == b.bounce_places &&
           std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same);
}

std::vector<bool> depended_on(const Plan& plan)
{
    std::vector<bool> depended(plan.ops.size());
    for (const std::uint32_t d : plan.dependencies) depended[d] = true;
    return depended;
}

}  // namespace hier::model
