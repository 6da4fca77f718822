// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"

namespace hier::model {

const char* to_string(Fault fault)
{
    switch (fault) {
    case Fault::none:
        return "no fault";
    case Fault::bad_dependency:
        return "dependency on an operation that is not an earlier one";
    case Fault::wrong_peer:
        return "not a peer at this level";
    case Fault::wrong_count:
        return "the counts of a pair are not 1, 2, ... in order";
    case Fault::outside_shards:
        return "bytes outside the shards or the bounce buffer";
    case Fault::wrong_source:
        return "the send buffer does not hold these bytes";
    case Fault::wrong_place:
        return "a buffer that is not there or not for this";
    case Fault::put_unannounced:
        return "put before the peer announced its buffer of this collective";
    case Fault::own_not_copied:
        return "own shard read before it was copied there";
    case Fault::not_held:
        return "bytes read that are not held";
    case Fault::written_twice:
        return "byte written twice";
    case Fault::returned_early:
        return "returned before every byte had arrived";
    case Fault::left_alone:
        return "returned before a rank that it puts to had entered";
    case Fault::stray:
        return "put lands when its target is not in this collective";
    case Fault::deadlock:
        return "deadlock";
    case Fault::not_forwarded:
        return "a chunk that arrived is not forwarded until another one arrives";
    case Fault::signal_without_data:
        return "signal without its data";
    }
    return "unknown fault";
}

std::string Verdict::text() const
{
    std::string out = to_string(fault);
    if (call >= 0) out += ", call " + std::to_string(call);
    if (rank >= 0) out += ", rank " + std::to_string(rank);
    if (op >= 0) out += ", op " + std::to_string(op);
    return out;
}

Extent home_of(const Op& op, Extent own)
{
    std::size_t home = op.slice.target;
    if (op.kind == Op::Kind::copy && op.to == Place::bounce)
        home = op.slice.source + (op.from == Place::send ? own.offset : 0);
    return {home, op.slice.length};
}

Plan plan_of(const Topology& topology, int rank, const Call& call)
{
    return plan_allgather(topology, rank,
                          {.shards = call.shards,
                           .chunk = call.chunk,
                           .route = call.route,
                           .in_place = call.in_place_at(rank),
                           .bounce = call.bounce_at(rank),
                           .eager = call.eager,
                           .publish = call.publishes_at(rank),
                           .own_whole = call.own_whole,
                           .copy_whole = call.own_whole,
                           .spread = call.spread});
}

Call planned(const Topology& topology, Call call)
{
    call.plans.clear();
    for (int r = 0; r < topology.size(); r++) call.plans.push_back(plan_of(topology, r, call));
    return call;
}

}  // namespace hier::model
