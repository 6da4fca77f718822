// SPDX-License-Identifier: BSD-3-Clause
#include "coll/common/plan_writer.hpp"

namespace hier {

std::uint32_t PlanWriter::add(Op::Kind kind, Level level, int peer, const Dependencies& after)
{
    Op op{};
    op.kind = kind;
    op.level = level;
    op.from = op.to = Place::receive;
    op.peer = peer;
    return plan_.append(op, after);
}

std::uint32_t PlanWriter::await_data(Level level, int peer, std::uint32_t count)
{
    const std::uint32_t op = add(Op::Kind::await_data, level, peer);
    plan_.ops[op].count = count;
    return op;
}

std::uint32_t PlanWriter::put(Level level, int peer_rank, Extent chunk, bool is_own,
                              Dependencies after)
{
    Peer& peer = peer_of(level, peer_rank);
    after.insert(after.end(), peer.before.begin(), peer.before.end());
    const std::uint32_t op = add(Op::Kind::put, level, peer_rank, after);
    plan_.ops[op].count = ++peer.puts;
    const Place from = source_of(level, is_own);
    plan_.ops[op].from = from;
    plan_.ops[op].slice = {offset_in(from, chunk.offset), chunk.offset, chunk.length};
    plan_.ops[op].packed = peer.bytes;
    peer.bytes += chunk.length;
    return op;
}

std::uint32_t PlanWriter::empty_put(int peer, Dependencies after)
{
    return put(Level::node, peer, {buffers_.own.offset, 0}, true, std::move(after));
}

void PlanWriter::hold_puts(Level level, int peer, Dependencies until)
{
    peer_of(level, peer).before = std::move(until);
}

std::uint32_t PlanWriter::copy(Place from, Place to, Extent chunk, const Dependencies& after)
{
    const std::uint32_t op = add(Op::Kind::copy, Level::node, rank_, after);
    plan_.ops[op].slice = {offset_in(from, chunk.offset), offset_in(to, chunk.offset),
                           chunk.length};
    plan_.ops[op].from = from;
    plan_.ops[op].to = to;
    return op;
}

std::uint32_t PlanWriter::copy_out(Place from, Extent chunk, const Dependencies& after)
{
    const auto [it, is_new] = copied_out_.try_emplace(chunk.offset);
    if (is_new) it->second = copy(from, Place::bounce, chunk, after);
    return it->second;
}

Place PlanWriter::source_of(Level level, bool is_own) const
{
    if (level == Level::rail && buffers_.bounce != nullptr) return Place::bounce;
    return is_own ? own_place() : Place::receive;
}

std::size_t PlanWriter::offset_in(Place place, std::size_t home) const
{
    switch (place) {
    case Place::send:
        return home - buffers_.own.offset;
    case Place::receive:
        return home;
    case Place::bounce:
        return buffers_.bounce->at(home);
    }
    return home;
}

}  // namespace hier
