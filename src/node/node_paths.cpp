// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_paths.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace hier {
namespace {

std::string name_of(const NodePaths& paths, std::size_t max_copied)
{
    const CellLimits& limits = paths.choice.limits();
    if (!paths.cells) return CmaPath::name;
    if (!paths.cma || limits.put == CellLimits::none) return ShmCells::name;
    const bool is_of_result = limits.result > 0;
    const std::size_t most = is_of_result ? limits.result : std::max(limits.put, max_copied);
    return format("copies between processes (CMA; %s of up to %zu KiB: %s)",
                  is_of_result ? "results" : "blocks", most >> 10, ShmCells::name);
}

CellLimits cell_limits(const NodeNeeds& needs)
{
    if (needs.share_cores) return {CellLimits::none, 0};
    if (needs.ranks == 2) return {PathChoice::max_of_two, 0};
    const bool are_small = needs.ranks > needs.max_roomy;
    if (needs.have_devices || are_small) return {PathChoice::max_through_cells, 0};
    if (needs.ranks >= PathChoice::many_ranks) return {CellLimits::none, 0};
    return {PathChoice::max_through_cells, PathChoice::max_result};
}

void add_host_paths(NodePaths& paths, const NodeContext& context, const NodeRanks& ranks,
                    const NodeNeeds& needs)
{
    std::vector<int> pids;
    for (const CmaTarget& process : ranks.processes) pids.push_back(process.pid);
    if (needs.has_cma) paths.cma = std::make_unique<CmaPath>(context, pids);
    const CellLimits limits = cell_limits(needs);
    if (needs.has_areas) {
        context.segment->place_area(ranks.numa);
        paths.cells = std::make_unique<ShmCells>(context);
    }
    paths.choice =
        PathChoice(needs.ranks, needs.has_cma, needs.has_areas, needs.have_devices, limits);
    if (needs.has_cma) paths.max_published = std::min(paths.max_published, limits.put);
    const std::size_t max_copied = needs.max_published(false);
    if (needs.publishes())
        paths.publish = std::make_unique<NodePublish>(
            context, max_copied,
            needs.lends() ? std::make_unique<LentBlock>(context, pids, *paths.cells) : nullptr);
    if (paths.publish && !needs.have_devices) {
        paths.max_published = needs.lends() ? NodePaths::any_size : max_copied;
        paths.max_skewed = needs.lends() ? NodePaths::any_size : needs.max_published(true);
    }
    paths.name = name_of(paths, paths.publish && !needs.have_devices ? max_copied : limits.put);
}

// Device memory that needs descriptors goes by device cells where no rank may pull.
PeerTables open_tables(const Group& group)
{
    const ExportTable::Address own = ExportTable::instance().address();
    std::string refusal = ExportTable::instance().refusal();
    PeerTables tables;
    for (const ExportTable::Address& address : group.collect(own)) {
        PeerTable* const table = PeerTable::open(address);
        tables.all.push_back(table);
        const bool is_own = address.process == own.process;
        if (refusal.empty() && table == nullptr && !is_own) refusal = "a table cannot be mapped";
        if (refusal.empty() && table != nullptr) refusal = table->try_pull();
    }
    const auto may = group.collect(static_cast<int>(refusal.empty()));
    tables.can_pull = std::find(may.begin(), may.end(), 0) == may.end();
    if (!refusal.empty())
        log(HIER_LOG_INFO, "device memory that the application maps goes by device cells (%s)",
            refusal.c_str());
    return tables;
}

std::string name_of_devices(const NodeRanks& ranks)
{
    return ranks.have_kernels                  ? "kernels, copy engines, "
           : ranks.fan_out != FanOutUse::never ? "kernels for chunks, copy engines, "
                                               : "copy engines, ";
}

void add_device_paths(NodePaths& paths, NodeContext& context, const Group& group,
                      const NodeRanks& ranks, const NodeNeeds& needs)
{
    const std::size_t max_by_cpu = ranks.max_by_cpu;
    const PeerTables tables = open_tables(group);
    paths.device_cells = std::make_unique<DeviceCells>(context);
    paths.offer =
        std::make_unique<ReceiveOffer>(context, *paths.device_cells, tables, paths.cma != nullptr);
    paths.buffers = std::make_unique<PeerBuffers>(context, *paths.device_cells, tables);
    paths.engines = std::make_unique<CopyEngines>(context, paths.buffers.get(), ranks.fan_out);
    if (needs.publishes_all())
        paths.device_publish = std::make_unique<DevicePublish>(
            context, *paths.publish,
            ranks.have_kernels ? std::make_unique<KernelExchange>(context, *paths.offer) : nullptr,
            max_by_cpu);
    paths.name = name_of_devices(ranks) + paths.name;
    if (paths.device_publish && max_by_cpu > 0)
        paths.name = format("CPU for blocks of up to %zu bytes, ", max_by_cpu) + paths.name;
}

}  // namespace

NodePaths make_node_paths(NodeContext& context, const Group& group, const NodeRanks& ranks,
                          const NodeNeeds& needs)
{
    NodePaths paths;
    if (needs.ranks == 1) {
        if (ranks.have_devices)
            paths.engines = std::make_unique<CopyEngines>(context, nullptr, FanOutUse::never);
        paths.name = ranks.have_devices ? "copy engines" : "nobody else";
        return paths;
    }
    add_host_paths(paths, context, ranks, needs);
    if (ranks.have_devices) add_device_paths(paths, context, group, ranks, needs);
    return paths;
}

}  // namespace hier
