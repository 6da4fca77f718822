// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_paths.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace hier {
namespace {

// Small, because every communicator has such cells, even if most of its puts go by CMA.
constexpr CellShape small_cells = {4, 16 << 10};
constexpr CellShape shared_core_cells = {4, 64 << 10};

// nullptr: puts go through shared memory.
std::unique_ptr<CmaPath> make_cma(const NodeContext& context, const Group& group,
                                  const std::vector<int>& pids, int intra)
{
    if (intra == HIER_INTRA_SHM) return nullptr;
    const std::string refusal = try_cma(group, pids);
    if (refusal.empty()) return std::make_unique<CmaPath>(context, pids);
    if (intra == HIER_INTRA_CMA) {
        throw SetupError("coll_hier_intra is cma, but the kernel refuses it: " + refusal);
    }
    log(HIER_LOG_INFO, "no copies between processes (%s): using shared memory inside the node",
        refusal.c_str());
    return nullptr;
}

// nullptr: there is no room for cells, and CMA takes all puts.
std::unique_ptr<ShmCells> make_cells(const NodeContext& context, const Group& group, int numa,
                                     CellShape shape, bool are_needed)
{
    try {
        return std::make_unique<ShmCells>(context, group, numa, shape);
    } catch (const SetupError& e) {  // on all ranks
        if (are_needed) throw;
        log(HIER_LOG_INFO, "no cells for small blocks (%s): all of them by CMA", e.what());
        return nullptr;
    }
}

// nullptr: there is no room.
std::unique_ptr<NodePublish> make_publish(const NodeContext& context, const Group& group, int numa)
{
    try {
        return std::make_unique<NodePublish>(context, group, numa);
    } catch (const SetupError& e) {  // on all ranks
        log(HIER_LOG_INFO, "small blocks are not published (%s)", e.what());
        return nullptr;
    }
}

std::string name_of(const NodePaths& paths, std::size_t max_through_cells)
{
    if (!paths.cells) return CmaPath::name;
    if (!paths.cma) return ShmCells::name;
    return format("copies between processes (CMA; up to %zu KiB: %s)", max_through_cells >> 10,
                  ShmCells::name);
}

void add_host_paths(NodePaths& paths, const NodeContext& context, const Group& group,
                    const NodeRanks& ranks, int intra)
{
    paths.cma = make_cma(context, group, ranks.pids, intra);
    const bool is_cma_enough = paths.cma && !ranks.have_devices;
    std::size_t max_through_cells = 0;
    if (!is_cma_enough || intra != HIER_INTRA_CMA) {
        const auto shared = group.collect(static_cast<int>(ranks.share_cores));
        const bool share_cores = std::find(shared.begin(), shared.end(), 1) != shared.end();
        max_through_cells =
            share_cores ? PathChoice::max_on_shared_cores : PathChoice::max_through_cells;
        const CellShape few = share_cores ? shared_core_cells : small_cells;
        paths.cells = make_cells(context, group, ranks.numa, is_cma_enough ? few : CellShape{},
                                 !is_cma_enough);
        if (paths.cells && !ranks.have_devices)
            paths.publish = make_publish(context, group, ranks.numa);
    }
    paths.choice = PathChoice(group.size(), paths.cma != nullptr, paths.cells != nullptr,
                              ranks.have_devices, max_through_cells);
    paths.name = name_of(paths, max_through_cells);
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

void add_device_paths(NodePaths& paths, NodeContext& context, const Group& group)
{
    const PeerTables tables = open_tables(group);
    paths.device_cells = std::make_unique<DeviceCells>(context);
    paths.offer =
        std::make_unique<ReceiveOffer>(context, *paths.device_cells, tables, paths.cma != nullptr);
    paths.buffers = std::make_unique<PeerBuffers>(context, *paths.device_cells, tables);
    paths.engines = std::make_unique<CopyEngines>(context, paths.buffers.get());
    paths.name = "copy engines, " + paths.name;
}

}  // namespace

NodePaths make_node_paths(NodeContext& context, const Group& group, const NodeRanks& ranks,
                          int intra)
{
    NodePaths paths;
    if (group.size() == 1) {
        if (ranks.have_devices) paths.engines = std::make_unique<CopyEngines>(context, nullptr);
        paths.name = ranks.have_devices ? "copy engines" : "nobody else";
        return paths;
    }
    add_host_paths(paths, context, group, ranks, intra);
    if (ranks.have_devices) add_device_paths(paths, context, group);
    return paths;
}

}  // namespace hier
