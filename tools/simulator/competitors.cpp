// SPDX-License-Identifier: BSD-3-Clause
#include "competitors.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

namespace bench::simulator {
namespace {

using hier::Extent;
using hier::Level;
using hier::Op;
using hier::Place;
using hier::Plan;
using Dependencies = std::vector<std::uint32_t>;

class Draft {
public:
    Draft(const Task& task, int rank) : task_(task), rank_(rank) {}

    [[nodiscard]] Level level(int peer) const
    {
        const auto& t = task_.topology;
        return t.node_of(peer) == t.node_of(rank_) ? Level::node : Level::rail;
    }

    [[nodiscard]] Extent blocks(int first, int last) const
    {
        const Extent& from = task_.shards[static_cast<std::size_t>(first)];
        const Extent& to = task_.shards[static_cast<std::size_t>(last)];
        return {from.offset, to.offset + to.length - from.offset};
    }

    // `count` shards, from that of `first` on and around the end, in a buffer of their own.
    [[nodiscard]] Extent around(int first, int count) const
    {
        Extent slice{0, 0};
        for (int i = 0; i < count; i++) {
            slice.length +=
                task_.shards[static_cast<std::size_t>((first + i) % task_.topology.size())].length;
        }
        return slice;
    }

    std::uint32_t add(Op::Kind kind, int peer, const Dependencies& after = {})
    {
        Op op{};
        op.kind = kind;
        op.level = peer == rank_ ? Level::node : level(peer);
        op.from = op.to = Place::receive;
        op.peer = peer;
        return plan.append(op, after);
    }

    std::uint32_t put(int peer, Extent part, Dependencies after)
    {
        if (!ready_.contains(peer)) {
            ready_[peer] = add(Op::Kind::await_announced, peer);
        }
        after.push_back(ready_[peer]);
        const std::uint32_t op = add(Op::Kind::put, peer, after);
        plan.ops[op].slice = {part.offset, part.offset, part.length};
        plan.ops[op].count = ++sent_[peer];
        return op;
    }

    std::uint32_t await(int peer, std::uint32_t count)
    {
        const std::uint32_t op = add(Op::Kind::await_data, peer);
        plan.ops[op].count = count;
        return op;
    }

    void copy_own()
    {
        const std::uint32_t op = add(Op::Kind::copy, rank_);
        const Extent own = blocks(rank_, rank_);
        plan.ops[op].slice = {0, own.offset, own.length};
        plan.ops[op].from = Place::send;
    }

    Plan plan;

private:
    const Task& task_;
    int rank_;
    std::map<int, std::uint32_t> ready_, sent_;
};

}  // namespace

Plan plan_flat_ring(const Task& task, int rank)
{
    Draft draft(task, rank);
    const int ranks = task.topology.size();
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    if (ranks > 1) {
        draft.add(Op::Kind::announce, previous);
        draft.put(next, draft.blocks(rank, rank), {});
    }
    draft.copy_own();
    for (int i = 1; i < ranks; i++) {
        const std::uint32_t came = draft.await(previous, static_cast<std::uint32_t>(i));
        const int source = (rank + ranks - i) % ranks;
        if (source != next) {
            draft.put(next, draft.blocks(source, source), {came});
        }
    }
    return std::move(draft.plan);
}

Plan plan_doubling(const Task& task, int rank)
{
    Draft draft(task, rank);
    const int ranks = task.topology.size();
    const bool is_even = std::has_single_bit(static_cast<unsigned>(ranks));
    for (int distance = 1; distance < ranks; distance *= 2) {
        draft.add(Op::Kind::announce, is_even ? rank ^ distance : (rank + distance) % ranks);
    }
    draft.copy_own();
    Dependencies came;
    for (int distance = 1; distance < ranks; distance *= 2) {
        if (is_even) {
            const int first = rank / distance * distance;
            draft.put(rank ^ distance, draft.blocks(first, first + distance - 1), came);
            came.push_back(draft.await(rank ^ distance, 1));
            continue;
        }
        const int count = std::min(distance, ranks - distance);
        draft.put((rank + ranks - distance) % ranks, draft.around(rank, count), came);
        came.push_back(draft.await((rank + distance) % ranks, 1));
    }
    return std::move(draft.plan);
}

namespace {

// The shards of a node. Neighbours in rank order are one block.
std::vector<Extent> blocks_of(const Task& task, int node)
{
    std::vector<Extent> blocks;
    for (const int rank : task.topology.ranks_on(node)) {
        const Extent& shard = task.shards[static_cast<std::size_t>(rank)];
        if (!blocks.empty() && blocks.back().offset + blocks.back().length == shard.offset) {
            blocks.back().length += shard.length;
        } else {
            blocks.push_back(shard);
        }
    }
    return blocks;
}

Dependencies gather_and_exchange(const Task& task, int leader, Draft& draft)
{
    const auto& topology = task.topology;
    const int nodes = topology.nodes();
    const int node = topology.node_of(leader);
    const auto leader_of = [&](int n) { return topology.ranks_on((n + nodes) % nodes)[0]; };
    Dependencies came;
    for (const int member : topology.ranks_on(node)) {
        if (member == leader) {
            draft.copy_own();
        } else {
            draft.add(Op::Kind::announce, member);
            came.push_back(draft.await(member, 1));
        }
    }
    if (nodes == 1) {
        return came;
    }
    draft.add(Op::Kind::announce, leader_of(node - 1));
    std::uint32_t last = 0;
    std::uint32_t arrived = 0;
    for (int i = 0; i < nodes; i++) {
        const auto blocks = blocks_of(task, (node + nodes - i) % nodes);
        if (i > 0) {
            arrived += static_cast<std::uint32_t>(blocks.size());
            last = draft.await(leader_of(node - 1), arrived);
        }
        for (std::size_t b = 0; i < nodes - 1 && b < blocks.size(); b++) {
            draft.put(leader_of(node + 1), blocks[b], i == 0 ? came : Dependencies{last});
        }
    }
    came.push_back(last);
    return came;
}

}  // namespace

Plan plan_single_leader(const Task& task, int rank, std::size_t segment)
{
    Draft draft(task, rank);
    const auto members = task.topology.ranks_on(task.topology.node_of(rank));
    const auto local = static_cast<std::size_t>(task.topology.local_of(rank));
    Dependencies everything;
    if (local == 0) {
        everything = gather_and_exchange(task, rank, draft);
    } else {
        draft.put(members[0], draft.blocks(rank, rank), {});
        draft.add(Op::Kind::announce, members[local - 1]);
    }
    const Extent whole = draft.blocks(0, task.topology.size() - 1);
    std::uint32_t count = 0;
    for (std::size_t done = 0; done < whole.length; done += segment) {
        const Extent part{whole.offset + done, std::min(segment, whole.length - done)};
        Dependencies after = everything;
        if (local > 0) {
            after = {draft.await(members[local - 1], ++count)};
        }
        if (local + 1 < members.size()) {
            draft.put(members[local + 1], part, after);
        }
    }
    return std::move(draft.plan);
}

}  // namespace bench::simulator
