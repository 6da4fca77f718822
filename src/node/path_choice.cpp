// SPDX-License-Identifier: BSD-3-Clause
#include "node/path_choice.hpp"

#include <algorithm>

namespace hier {

PathChoice::PathChoice(int ranks, bool has_cma, bool has_cells, bool has_devices, CellLimits limits)
    : by_cpu_(!has_cma    ? PutPath::cells
              : has_cells ? PutPath::open
                          : PutPath::cma),
      at_first_(has_devices ? PutPath::unknown : by_cpu_), limits_(limits),
      paths_(static_cast<std::size_t>(ranks), at_first_)
{
}

void PathChoice::begin(std::size_t result)
{
    const bool are_open = at_first_ == PutPath::open;
    std::fill(paths_.begin(), paths_.end(),
              are_open && result <= limits_.result ? PutPath::cells : at_first_);
}

void PathChoice::know(int peer, WritePath path)
{
    switch (path) {
    case WritePath::by_cpu:
        at(peer) = by_cpu_;
        break;
    case WritePath::by_cells:
        at(peer) = PutPath::cells;
        break;
    case WritePath::by_device:
    case WritePath::by_segments:
        at(peer) = PutPath::engines;
        break;
    case WritePath::by_device_cells:
        at(peer) = PutPath::device_cells;
        break;
    }
}

}  // namespace hier
