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
    plan_.ops[op].from = source_of(level, is_own);
    plan_.ops[op].slice = slice_of(chunk, plan_.ops[op].from);
    return op;
}

void PlanWriter::hold_puts(Level level, int peer, Dependencies until)
{
    peer_of(level, peer).before = std::move(until);
}

std::uint32_t PlanWriter::copy(Place from, Place to, Extent chunk, const Dependencies& after)
{
    const std::uint32_t op = add(Op::Kind::copy, Level::node, rank_, after);
    plan_.ops[op].slice = slice_of(chunk, from);
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
    if (level == Level::rail && buffers_.bounce) return Place::bounce;
    return is_own ? own_place() : Place::receive;
}

// A byte has its home offset in every buffer but the send buffer.
Slice PlanWriter::slice_of(Extent home, Place from) const
{
    const std::size_t base = from == Place::send ? buffers_.own.offset : 0;
    return {home.offset - base, home.offset, home.length};
}

}  // namespace hier
