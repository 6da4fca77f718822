// SPDX-License-Identifier: BSD-3-Clause
// The plans of all ranks for one call, and sums over them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "hier/plan.hpp"
#include "machine.hpp"

namespace hier::test {

struct Team {
    Topology topology;
    std::vector<Extent> shards;
    std::vector<Plan> plans;
    std::size_t chunk;
    Route route;
    bool in_place;
    std::vector<bool> bounce;  // by rank
};

inline Team team_of(const std::vector<int>& nodes, std::vector<Extent> shards, std::size_t chunk,
                    Route route, bool in_place = false, std::vector<bool> bounce = {})
{
    bounce.resize(nodes.size());
    Team team{Topology(nodes), std::move(shards), {}, chunk, route, in_place, std::move(bounce)};
    for (int r = 0; r < team.topology.size(); r++) {
        team.plans.push_back(plan_allgather(
            team.topology, r,
            {team.shards, chunk, route, in_place, team.bounce[static_cast<std::size_t>(r)]}));
    }
    return team;
}

inline Team team_of(const char* text, std::size_t bytes, std::size_t chunk, Route route,
                    bool in_place = false, std::vector<bool> bounce = {})
{
    const auto nodes = machine(text);
    return team_of(nodes, equal_shards(static_cast<int>(nodes.size()), bytes), chunk, route,
                   in_place, std::move(bounce));
}

// The place that an operation writes to.
inline Extent target_of(const Op& op) { return {op.slice.target, op.slice.length}; }

using Visit = std::function<void(int rank, const Op& op)>;

inline void for_each_op(const Team& team, Op::Kind kind, const Visit& visit)
{
    for (int r = 0; r < team.topology.size(); r++) {
        for (const Op& op : team.plans[static_cast<std::size_t>(r)].ops) {
            if (op.kind == kind) visit(r, op);
        }
    }
}

inline std::size_t count(const Team& team, Op::Kind kind, Level level, int rank)
{
    std::size_t n = 0;
    for_each_op(team, kind,
                [&](int r, const Op& op) { n += r == rank && op.level == level ? 1 : 0; });
    return n;
}

inline std::size_t count(const Team& team, Op::Kind kind)
{
    std::size_t n = 0;
    for_each_op(team, kind, [&](int, const Op&) { n++; });
    return n;
}

inline std::size_t bytes_of_node(const Team& team, int node)
{
    std::size_t bytes = 0;
    for (const int r : team.topology.ranks_on(node))
        bytes += team.shards[static_cast<std::size_t>(r)].length;
    return bytes;
}

inline std::size_t bytes_of_all(const Team& team)
{
    std::size_t bytes = 0;
    for (const Extent s : team.shards) bytes += s.length;
    return bytes;
}

inline std::vector<std::size_t> bytes_put_to(const Team& team, Level level)
{
    std::vector<std::size_t> bytes(team.plans.size());
    for_each_op(team, Op::Kind::put, [&](int, const Op& op) {
        if (op.level == level) bytes[static_cast<std::size_t>(op.peer)] += op.slice.length;
    });
    return bytes;
}

}  // namespace hier::test
