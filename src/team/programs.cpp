// SPDX-License-Identifier: BSD-3-Clause
#include "team/programs.hpp"

#include <algorithm>

namespace hier {

BlockSizes sizes_of(std::span<const Extent> blocks)
{
    if (blocks.empty()) return BlockSizes::equal;
    std::size_t largest = 0, all = 0;
    for (const Extent& block : blocks) {
        largest = std::max(largest, block.length);
        all += block.length;
    }
    const std::size_t average = all / blocks.size();
    return largest < average + average / 2 ? BlockSizes::alike : BlockSizes::skewed;
}

const Choice* Programs::choice_of(std::size_t collective, std::size_t bytes, BlockSizes sizes) const
{
    for (const PreparedProgram& p : kept_)
        if (p.key.collective == collective && p.key.bytes == bytes && p.sizes == sizes)
            return &p.choice;
    return nullptr;
}

PreparedProgram* Programs::find(const ProgramKey& key)
{
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const PreparedProgram& p) { return p.key == key; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return &kept_.front();
}

PreparedProgram& Programs::add(PreparedProgram made)
{
    kept_.push_front(std::move(made));
    bytes_ += kept_.front().program->bytes();
    while (kept_.size() > max_kept || (kept_.size() > 1 && bytes_ > max_bytes)) {
        bytes_ -= kept_.back().program->bytes();
        kept_.pop_back();
        drops_++;
    }
    return kept_.front();
}

}  // namespace hier
