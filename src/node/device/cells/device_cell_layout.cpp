// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cells/device_cell_layout.hpp"

#include <algorithm>
#include <bit>

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

bool DeviceCellLayout::exists() const
{
    return context_.segment->layout().device_cell_rings.length > 0;
}

DeviceCellLayout::Ring DeviceCellLayout::ring(int from, int to) const
{
    const NodeSegment& segment = *context_.segment;
    return segment.ring<Entry>(segment.layout().device_cell_rings, from, to);
}

std::size_t DeviceCellLayout::cell_bytes() const
{
    const std::size_t cells = index(context_.size() - 1) * cells_per_peer;
    return std::bit_floor(std::min<std::size_t>(4 << 20, max_bytes / cells));
}

std::size_t DeviceCellLayout::lent_bytes() const
{
    return index(context_.size() - 1) * cells_per_peer * cell_bytes();
}

std::size_t DeviceCellLayout::offset(int from, int to) const
{
    const int place = (from - to + context_.size()) % context_.size() - 1;
    return index(place) * cells_per_peer * cell_bytes();
}

}  // namespace hier
