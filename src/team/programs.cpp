// SPDX-License-Identifier: BSD-3-Clause
#include "team/programs.hpp"

#include <algorithm>

namespace hier {

const Choice* Programs::choice_of(std::size_t collective, std::size_t bytes) const
{
    for (const PreparedProgram& p : kept_)
        if (p.key.collective == collective && p.key.bytes == bytes) return &p.choice;
    return nullptr;
}

const PreparedProgram* Programs::find(const ProgramKey& key, std::uint64_t sequence)
{
    for (PreparedProgram& p : kept_) {
        if (p.key != key) continue;
        p.used = sequence;
        return &p;
    }
    return nullptr;
}

const PreparedProgram& Programs::add(PreparedProgram made)
{
    if (kept_.size() == max_kept) {
        kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                     [](const auto& a, const auto& b) { return a.used < b.used; }));
    }
    return kept_.emplace_back(std::move(made));
}

}  // namespace hier
