// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_layout.hpp"

#include <algorithm>

#include "node/entry_ring.hpp"
#include "node/node_segment.hpp"

namespace hier {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);
constexpr std::size_t page = 4096;

// Those of up to 16 ranks with a core each take 2 MiB at most: what lies in the L2 of a core comes from there.
constexpr CellShape cells_of_two = {4, 16 << 10};
constexpr CellShape cells_of_few = {4, 64 << 10};
constexpr CellShape cells_of_eight = {8, 32 << 10};
constexpr CellShape cells_of_many = {4, 32 << 10};
constexpr CellShape cells_for_devices = {8, 64 << 10};
constexpr std::size_t roomy_half = 32 << 10;
// With so little an area still works, whatever the number of ranks.
constexpr std::size_t min_area = 4 << 10;

std::size_t round_up(std::size_t bytes, std::size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

std::size_t round_down_to_lines(std::size_t bytes) { return bytes / cache_line * cache_line; }

// A turn at a GPU takes as long as copies of some 100 KiB, so larger blocks are published too, from
// halves of 4 MiB in all. So are blocks that usually go by kernels. A block has a header.
std::size_t wanted_half(const NodeNeeds& needs)
{
    constexpr std::size_t largest = 512 << 10, least = 64 << 10, all = 4 << 20;
    if (!needs.share_gpus && !needs.have_kernels)
        return std::max(roomy_half, needs.max_published(true) + page);
    if (!needs.gpu_turns && !needs.have_kernels) return roomy_half + page;
    const std::size_t share = all / 2 / static_cast<std::size_t>(needs.ranks);
    return std::clamp(round_up(share, page), least, largest) + page;
}

CellShape wanted_cells(const NodeNeeds& needs)
{
    if (needs.have_devices) return cells_for_devices;
    if (needs.ranks == 2 && needs.has_cma && !needs.share_cores) return cells_of_two;
    if (needs.ranks <= 4 || needs.share_cores) return cells_of_few;
    return needs.ranks <= 8 ? cells_of_eight : cells_of_many;
}

std::size_t take(std::size_t& end, std::size_t bytes, std::size_t unit)
{
    const std::size_t at = round_up(end, unit);
    end = at + bytes;
    return at;
}

template <class Entry>
RingTable add_rings(std::size_t& end, std::size_t ranks, std::size_t length, bool is_roomy)
{
    const std::size_t unit = is_roomy ? cache_line : word;
    RingTable table{.length = length};
    table.sender_stride = round_up(EntryRing<Entry>::sender_bytes(length), unit);
    table.receiver_stride = unit;
    table.sender_at = take(end, ranks * ranks * table.sender_stride, cache_line);
    table.receiver_at = take(end, ranks * ranks * table.receiver_stride, cache_line);
    return table;
}

// An area has four cells. If blocks are published too, the halves get as much as the cells.
void fit_area(NodeLayout& layout, std::size_t bytes, bool publishes)
{
    constexpr std::size_t count = 4;
    const std::size_t of_cells = publishes ? bytes / 2 : bytes;
    const std::size_t largest = NodeLayout::cell_stride(layout.cells.bytes);
    const std::size_t stride = std::min(largest, round_down_to_lines(of_cells / count));
    layout.cells = {count, stride - cache_line};
    if (publishes) layout.half = std::min(roomy_half, round_down_to_lines(bytes / 4));
}

}  // namespace

std::size_t NodeNeeds::max_published(bool is_skewed) const
{
    constexpr std::size_t of_two = 8 << 10, small = 16 << 10, large = 32 << 10, equal = 64 << 10,
                          skewed = 128 << 10;
    // Every communicator has two halves for them, whose memory is reserved.
    constexpr std::size_t of_all = 2 << 20;
    const bool is_single = ranks == blocks;
    if (!is_single || !has_areas || have_devices || share_cores) return small;
    if (ranks == 2) return has_cma && !is_cma_slow ? of_two : small;
    if (ranks > max_roomy) return small;
    const std::size_t share = of_all / static_cast<std::size_t>(ranks) / page * page;
    return std::clamp(share, large, is_skewed ? skewed : equal);
}

NodeLayout::NodeLayout(const NodeNeeds& needs) : ranks(needs.ranks)
{
    const auto count = static_cast<std::size_t>(ranks);
    const bool is_roomy = ranks <= needs.max_roomy;
    std::size_t end = cache_line;  // of the failure word
    slots = take(end, count * sizeof(NodeSlot), cache_line);
    signal_stride = is_roomy ? cache_line : needs.have_devices ? 2 * word : word;
    signals = take(end, count * count * signal_stride, cache_line);
    if (needs.have_devices && is_roomy)
        device_cell_rings = add_rings<DeviceCellEntry>(end, count, device_cells_per_peer, is_roomy);
    const auto blocks_of_team = static_cast<std::size_t>(needs.blocks);
    if (blocks_of_team > 0 && count * blocks_of_team <= max_displacements) {
        blocks = blocks_of_team;
        displacements = take(end, count * blocks * word, cache_line);
    }
    if (needs.has_areas) {
        const bool publishes = needs.publishes();
        cell_rings = add_rings<CellEntry>(end, count, is_roomy ? 16 : 8, is_roomy);
        cells = wanted_cells(needs);
        if (is_roomy) {
            half = publishes ? wanted_half(needs) : 0;
        } else {
            const std::size_t left = needs.max_bytes - std::min(end + page, needs.max_bytes);
            fit_area(*this, std::max(left / count, min_area), publishes);
        }
        const std::size_t unit = is_roomy ? page : cache_line;
        area_stride = round_up(cells.count * cell_stride(cells.bytes) + 2 * half, unit);
        areas = take(end, count * area_stride, page);
    }
    bytes = end;
}

}  // namespace hier
