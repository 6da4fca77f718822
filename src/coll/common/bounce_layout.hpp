// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's bounce buffer has the bytes that pass through it. A byte is named by its home, its
// place in the receive buffers. The bounce buffer holds only what this rank sends to other nodes
// and what enters its node here, without gaps.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

#include "hier/plan.hpp"

namespace hier {

class BounceLayout {
public:
    // Puts a run of bytes behind all others. No byte may be added twice.
    void add(Extent home)
    {
        if (home.length > 0) at_[home.offset] = bytes_;
        bytes_ += home.length;
    }
    // The place of a byte that has been added.
    std::size_t at(std::size_t home) const
    {
        const auto run = std::prev(at_.upper_bound(home));
        return run->second + (home - run->first);
    }
    std::size_t bytes() const { return bytes_; }

private:
    std::map<std::size_t, std::size_t> at_;  // by the home of a run's first byte
    std::size_t bytes_ = 0;
};

}  // namespace hier
