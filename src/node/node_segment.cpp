// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_segment.hpp"

#include <utility>

#include "topology/discovery.hpp"

namespace hier {

// No constructor has to run in fresh shared memory. It is zero, which is the first value of every
// word.
NodeSegment::NodeSegment(int rank, const NodeLayout& layout, SharedMemory memory)
    : rank_(rank), layout_(layout), memory_(std::move(memory))
{
}

NodeSegment::~NodeSegment()
{
    if (!registration_.release()) memory_.keep();
}

// The pages are on the NUMA node of the rank that made the memory. A page can move if only one
// process has mapped it. The writes below map the pages here.
void NodeSegment::place_area(int numa) const
{
    if (numa < 0 || layout_.area_stride == 0) return;
    constexpr std::size_t page = 4096;  // the smallest size
    std::byte* const own = area(rank_);
    auto* const bytes = static_cast<volatile std::byte*>(own);
    for (std::size_t i = 0; i < layout_.area_stride; i += page) bytes[i] = {};
    (void)place_memory(own, layout_.area_stride, numa);
}

}  // namespace hier
