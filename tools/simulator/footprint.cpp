// SPDX-License-Identifier: BSD-3-Clause
#include "footprint.hpp"

#include "algorithms.hpp"
#include "exec/executor.hpp"
#include "exec/program.hpp"
#include "net/ucx/lane/rail_board.hpp"
#include "node/node_layout.hpp"

namespace bench::simulator {
namespace {

using hier::Level;
using hier::Op;

// As Program and Executor lay their tables out. Capacity beyond size is not counted.
std::size_t program_bytes(const hier::Program& program, std::size_t dependencies)
{
    constexpr std::size_t index = sizeof(std::uint32_t);
    constexpr std::size_t cursor = 3 * sizeof(std::size_t);
    const std::size_t ops = program.size();
    // The plan. Then pending, first successor, peer, pair. Then successors, pending and queue of a
    // run.
    std::size_t bytes = ops * sizeof(Op) + dependencies * index;
    bytes += ops * (3 * index + sizeof(std::size_t)) + dependencies * index + 2 * ops * index;
    for (const Level level : {Level::node, Level::rail}) {
        for (const auto& pair : program.pairs(level)) {
            bytes += sizeof pair + cursor;
            bytes += index * (pair.puts.size() + pair.awaits.size() + pair.readies.size());
        }
    }
    return bytes;
}

}  // namespace

Footprint footprint_of(const Options& options, std::size_t bytes, const hier::Choice& choice)
{
    const hier::Topology topology = make_topology(options.ranks_of());
    const auto shards = hier::equal_shards(topology.size(), bytes);
    hier::Plan plan = hier::plan_allgather(topology, 0, shape_of(options, shards, choice));
    Footprint footprint;
    for (const Op& op : plan.ops) {
        footprint.announcements += op.kind == Op::Kind::announce && op.level == Level::rail;
    }
    const std::size_t dependencies = plan.dependencies.size();
    footprint.program = program_bytes(hier::Program(std::move(plan), topology, 0), dependencies);

    const auto rail = topology.ranks_on_rail(topology.rail_of(0));
    for (const int peer : rail) {
        footprint.endpoints += topology.node_of(peer) != topology.node_of(0);
    }
    if (topology.nodes() > 1) {
        footprint.board = (1 + rail.size()) * sizeof(hier::RailSlot);
    }
    footprint.segment =
        hier::NodeLayout({.ranks = static_cast<int>(topology.ranks_on(0).size()), .has_cma = true})
            .bytes;
    // Each lane has its own endpoints and board.
    const auto lanes = static_cast<std::size_t>(lanes_of(options.machine, options.ranks_of()));
    footprint.endpoints *= lanes;
    footprint.board *= lanes;
    footprint.topology = static_cast<std::size_t>(topology.size()) * 5 * sizeof(int);
    return footprint;
}

}  // namespace bench::simulator
