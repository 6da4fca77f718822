// SPDX-License-Identifier: BSD-3-Clause
#include "hunt.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "shapes.hpp"

namespace hier::model {
namespace {

bool are_peers(const Topology& topology, const Pair& c)
{
    if (c.from == c.to) return false;
    const bool same_node = topology.node_of(c.from) == topology.node_of(c.to);
    if (c.level == Level::node) return same_node;
    return !same_node && topology.rail_of(c.from) == topology.rail_of(c.to);
}

template <class F> void for_each_pair(const Topology& topology, F f)
{
    for (const Level level : {Level::node, Level::rail}) {
        for (int from = 0; from < topology.size(); from++) {
            for (int to = 0; to < topology.size(); to++) {
                if (are_peers(topology, {level, from, to})) f(Pair{level, from, to});
            }
        }
    }
}

bool is_static(Fault fault) { return fault < Fault::put_unannounced; }

}  // namespace

std::vector<Schedule> laggards(const Topology& topology)
{
    std::vector<Schedule> out;
    out.reserve(static_cast<std::size_t>(topology.size()));
    for (int r = 0; r < topology.size(); r++) {
        out.push_back({Schedule::Kind::slow_rank, 1, {Level::node, r, r}, 0});
    }
    for_each_pair(topology, [&](const Pair& c) {
        out.push_back({Schedule::Kind::slow_pair, 1, c, 0});
    });
    return out;
}

std::vector<Schedule> late_operations(int rank, const Call& call)
{
    std::vector<Schedule> out;
    for (std::uint32_t op = 0; op < call.plan(rank).ops.size(); op++) {
        out.push_back({Schedule::Kind::slow_op, 1, {Level::node, rank, rank}, op});
    }
    return out;
}

std::vector<Schedule> stalls(const Topology& topology, const Call& call)
{
    std::vector<Schedule> out;
    for_each_pair(topology, [&](const Pair& c) {
        if (c.level != Level::rail) return;
        const auto& ops = call.plan(c.from).ops;
        const auto puts = std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
            return op.kind == Op::Kind::put && op.level == Level::rail && op.peer == c.to;
        });
        for (std::uint32_t bounces = 1; bounces < static_cast<std::uint32_t>(puts); bounces++) {
            out.push_back({Schedule::Kind::stalled, 1, c, bounces});
        }
    });
    return out;
}

Fault Hunt::first_fault(const Topology& topology, std::vector<Call>& calls, int mutated, int rank)
{
    const Call& call = calls[static_cast<std::size_t>(mutated)];
    if (const Verdict verdict = inspect(topology, rank, call)) return verdict.fault;

    const auto fault_among = [&](std::span<const Call> some,
                                 const std::vector<Schedule>& schedules) {
        for (const Schedule& schedule : schedules) {
            if (const Verdict verdict = model::run(topology, some, schedule)) return verdict.fault;
        }
        return Fault::none;
    };
    Fault fault = fault_among(calls, {{}});
    if (fault == Fault::none) fault = fault_among(calls, laggards(topology));
    if (fault == Fault::none) fault = fault_among(calls, late_operations(rank, call));
    if (fault == Fault::none) fault = fault_among({&call, 1}, stalls(topology, call));
    for (unsigned seed = 0; seed < 100 && fault == Fault::none; seed++) {
        fault = fault_among(calls, {{Schedule::Kind::priorities, seed, {}, 0}});
    }
    return fault;
}

void Hunt::all(const Topology& topology, const Call& call)
{
    std::vector<Call> calls = {call, call};
    for (int rank = 0; rank < topology.size(); rank++) {
        for (Mutant& mutant : mutants_of(topology, rank, call)) {
            for (const int mutated : {1, 0}) {
                if (mutated == 0 && mutant.only_last_call) continue;
                Plan& plan = calls[static_cast<std::size_t>(mutated)].plan(rank);
                std::swap(plan, mutant.plan);
                const Fault fault = first_fault(topology, calls, mutated, rank);
                std::swap(plan, mutant.plan);

                mutants_++;
                by_change_[mutant.change]++;
                by_fault_[static_cast<std::size_t>(fault)]++;
                if (is_static(fault) && fault != Fault::none) inspected_++;
                if (fault == Fault::none) {
                    survivors_.push_back(std::string(mutant.change) + ", call " +
                                         std::to_string(mutated) + ", rank " +
                                         std::to_string(rank) + " op " + std::to_string(mutant.op) +
                                         ", nodes of ranks " + describe(topology) + ", " +
                                         to_string(call.route) + (call.publish ? ", publish" : ""));
                }
            }
        }
    }
}

}  // namespace hier::model
