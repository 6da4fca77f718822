// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical allgather, both levels at once.
//
//            node 0                     node 1
//        r0 ---- push ---- r1       r2 ---- push ---- r3
//         |                 |        |                 |
//         +------ rail 0 ---|--------+                 |
//                           +------- rail 1 -----------+
//
//   1. announce: whoever will write here learns that it may
//   2. put the own shard, chunk by chunk, to its entry rank on every other node (direct), or on
//      the next one (ring)
//   3. at the same time push the own shard to the node's other ranks
//   4. as each chunk of a remote shard lands, push it to the node's other ranks (and, in a ring,
//      put it on to the next node)
//
// N nodes, G ranks a node, S bytes a shard. Each rail carries (N-1)*S in and out, the minimum; each
// rank pushes (G-1)*N*S. Time ~ max(rail, push) + one chunk's fan-out. Peers are taken in staggered
// order, so that at no time all ranks write to the same one.
//
// A rank whose network reaches only its bounce buffer (it need not be so on every rank):
//
//     send or receive -- copy --> bounce -- 2 --> peer            the own shard, chunk by chunk
//                        peer --> bounce -- copy --> receive -- 4 --> the node's other ranks
//                                    \------ 4, ring --> next node
//
// It copies its own S bytes out, once for all next hops, and the (N-1)*S of its rail in. (G ranks a
// node again; uneven nodes: what enters at it.) Only the copy out delays its rail, by one chunk.
//
// Bundles, for shards so small that messages cost more than bytes: a node's shards go to each other
// node in one message, which one rank of each sends and another takes. (N-1)/G messages a rank
// instead of N-1, for one hop more.
//
//     r0, r1 -- push --> leader for node 1 -- put {r0, r1} --> its entry rank -- push --> r2, r3
//
// Eager calls: small shards are put without waiting for the peer, and nobody announces. That saves a
// hop. A rank that waits for data waits for its sender, too, so that a report can name it.
//
// Published calls: on its node a rank puts each small block once, where all others read it, and waits
// for nobody.
//
// In both, a rank that has ended a call knows that all ranks it exchanges data with have entered the
// call, because it has data from them. A rank with an empty shard sends none. So it sends a word
// instead (enter), and the others wait for that (await_entered).
//
// Source of the algorithm: the two-level allgather of Traeff, Ripke, Siebert et al. with one leader
// per local rank (multi-leader / multi-rail), pipelined by chunk.
#include "coll/allgather/plan.hpp"

#include <algorithm>
#include <map>

#include "coll/allgather/routing.hpp"

namespace hier {
namespace {

class AllgatherPlanner {
public:
    AllgatherPlanner(const Topology& topology, int rank, const AllgatherShape& shape)
        : topo_(topology), shape_(shape), routing_(topology, shape), rank_(rank),
          node_(topology.node_of(rank))
    {
        plan_.depth = shape.depth;
    }

    Plan plan()
    {
        announce();
        if (!bundles()) put_own_shard_on_rail();
        push_own_shard();
        copy_own_shard();
        if (bundles()) put_bundles();
        take_remote_shards();
        await_node();
        drain();
        return std::move(plan_);
    }

private:
    using Dependencies = std::vector<std::uint32_t>;
    static constexpr int several = -1;  // owners
    struct Peer {
        Dependencies before;         // every put: at first, the op that waits for its announcement
        std::uint32_t last_put = 0;  // op
        std::uint32_t puts = 0;
    };

    std::uint32_t add(Op::Kind kind, Level level, int peer, const Dependencies& after = {})
    {
        Op op{};
        op.kind = kind;
        op.level = level;
        op.from = op.to = Place::receive;
        op.peer = peer;
        return plan_.append(op, after);
    }

    template <class F> void for_each_node_peer(F f) const
    {
        const auto ranks = topo_.ranks_on(node_);
        const std::size_t me = static_cast<std::size_t>(topo_.local_of(rank_));
        for (std::size_t i = 1; i < ranks.size(); i++) f(ranks[(me + i) % ranks.size()]);
    }

    bool has_node_peers() const { return topo_.ranks_on(node_).size() > 1; }

    // Whom a put on the node goes to.
    template <class F> void for_each_node_target(F f) const
    {
        if (!shape_.publish) return for_each_node_peer(f);
        if (has_node_peers()) f(Op::every_peer);
    }

    bool reaches_a_leader(int target) const
    {
        bool any = target != Op::every_peer && routing_.leads(target);
        if (target == Op::every_peer)
            for_each_node_peer([&](int rank) { any = any || routing_.leads(rank); });
        return any;
    }

    Peer& rail_peer(int rank)
    {
        const auto [it, is_new] = rail_.try_emplace(rank);
        if (is_new && !shape_.eager)
            it->second.before = {add(Op::Kind::await_announced, Level::rail, rank)};
        if (is_new && shape_.eager && shard(rank).length == 0)
            add(Op::Kind::await_entered, Level::rail, rank);
        return it->second;
    }

    Extent shard(int rank) const { return routing_.shard(rank); }
    bool bundles() const { return shape_.route == Route::bundles; }

    Place own_place() const { return shape_.in_place ? Place::receive : Place::send; }

    Place place_of(Level level, int owner) const
    {
        if (level == Level::rail && shape_.bounce) return Place::bounce;
        return owner == rank_ ? own_place() : Place::receive;
    }

    // A byte has its home offset in every buffer but the send buffer, which holds the own shard alone.
    Slice slice_of(Extent home, Place from) const
    {
        const std::size_t base = from == Place::send ? shard(rank_).offset : 0;
        return {home.offset - base, home.offset, home.length};
    }

    void put(Level level, int peer_rank, Peer& peer, int owner, Extent chunk, Dependencies after)
    {
        after.insert(after.end(), peer.before.begin(), peer.before.end());
        const std::uint32_t op = add(Op::Kind::put, level, peer_rank, after);
        plan_.ops[op].count = ++peer.puts;
        plan_.ops[op].from = place_of(level, owner);
        plan_.ops[op].slice = slice_of(chunk, plan_.ops[op].from);
        peer.last_put = op;
    }

    std::uint32_t copy(Place from, Place to, Extent chunk, const Dependencies& after = {})
    {
        const std::uint32_t op = add(Op::Kind::copy, Level::node, rank_, after);
        plan_.ops[op].slice = slice_of(chunk, from);
        plan_.ops[op].from = from;
        plan_.ops[op].to = to;
        return op;
    }

    // One copy, however many next hops the chunk has.
    std::uint32_t copy_out(Place from, Extent chunk, const Dependencies& after = {})
    {
        const auto [it, is_new] = copied_out_.try_emplace(chunk.offset);
        if (is_new) it->second = copy(from, Place::bounce, chunk, after);
        return it->second;
    }

    // Tells the ranks that write here that they may, and waits for those that this rank writes to.
    void announce()
    {
        std::vector<int> told;
        routing_.for_each_entering(rank_, [&](int source, Extent) {
            const int sender = routing_.previous_hop(source, node_);
            if (std::find(told.begin(), told.end(), sender) != told.end()) return;
            told.push_back(sender);
            add(shape_.eager ? Op::Kind::await_entered : Op::Kind::announce, Level::rail, sender);
            if (shape_.eager && shard(rank_).length == 0) enter_on_rail(sender);
        });
        if (!has_node_peers()) return;
        if (!shape_.publish) add(Op::Kind::announce, Level::node, Op::every_peer);
        if (shape_.publish && node_puts_of(rank_) == 0)
            add(Op::Kind::enter, Level::node, Op::every_peer);
        for_each_node_peer([&](int rank) {
            if (shape_.publish) {
                add(Op::Kind::await_entered, Level::node, rank);
            } else {
                local_[rank].before = {add(Op::Kind::await_announced, Level::node, rank)};
            }
        });
    }

    void enter_on_rail(int peer)
    {
        const std::uint32_t entered = add(Op::Kind::enter, Level::rail, peer);
        add(Op::Kind::drain, Level::rail, peer, {entered});
    }

    void put_own_shard_on_rail()
    {
        routing_.for_each_next_hop(rank_, rank_, [&](int next) {
            routing_.for_each_chunk(shard(rank_), [&](Extent slice) {
                Peer& peer = rail_peer(next);
                Dependencies after;
                if (shape_.bounce) after.push_back(copy_out(own_place(), slice));
                put(Level::rail, next, peer, rank_, slice, std::move(after));
            });
        });
    }

    void push_own_shard()
    {
        std::map<int, Dependencies> pushes;  // by node peer that leads, or to all
        routing_.for_each_own_push(rank_, [&](Extent slice) {
            for_each_node_target([&](int target) {
                Peer& peer = local_[target];
                put(Level::node, target, peer, rank_, slice, {});
                if (bundles() && reaches_a_leader(target)) pushes[target].push_back(peer.last_put);
            });
        });
        // A leader takes what comes first for its node's own.
        for (auto& [rank, ops] : pushes) local_[rank].before = std::move(ops);
    }

    void copy_own_shard()
    {
        if (shape_.in_place) return;
        routing_.for_each_own_copy(rank_, [&](Extent slice) {
            own_copies_.push_back(copy(Place::send, Place::receive, slice));
        });
    }

    // The own node's, by those who lead.
    void put_bundles()
    {
        if (!routing_.leads(rank_)) return;
        std::map<int, std::uint32_t> here;  // by node peer: its shard has arrived
        for_each_node_peer([&](int rank) {
            if (shard(rank).length == 0) return;
            here[rank] = add(Op::Kind::await_data, Level::node, rank);
            plan_.ops[here[rank]].count = routing_.own_pushes(rank);
        });
        for (int i = 1; i < topo_.nodes(); i++) {
            const int to = (node_ + i) % topo_.nodes();
            if (topo_.leader(node_, to) != rank_) continue;
            const int next = topo_.entry(rank_, to);
            for (const Extent whole : routing_.bundle(node_)) {
                routing_.for_each_chunk(whole, [&](Extent slice) {
                    Peer& peer = rail_peer(next);
                    const bool is_own = is_within(slice, shard(rank_));
                    Dependencies after;
                    if (!is_own) after = arrivals_of(slice, here);
                    if (shape_.bounce)
                        after = {copy_out(is_own ? own_place() : Place::receive, slice, after)};
                    put(Level::rail, next, peer, is_own ? rank_ : several, slice, after);
                });
            }
        }
    }

    static bool is_within(Extent part, Extent whole)
    {
        return part.offset >= whole.offset &&
               part.offset + part.length <= whole.offset + whole.length;
    }

    // What has to be done before a part of the own node's bundle is in the receive buffer.
    Dependencies arrivals_of(Extent part, const std::map<int, std::uint32_t>& here) const
    {
        const auto meets = [&](Extent s) {
            return s.offset < part.offset + part.length && part.offset < s.offset + s.length;
        };
        Dependencies after;
        for (const auto& [rank, arrived] : here)
            if (meets(shard(rank))) after.push_back(arrived);
        for (const std::uint32_t op : own_copies_)
            if (meets({plan_.ops[op].slice.target, plan_.ops[op].slice.length}))
                after.push_back(op);
        return after;
    }

    void take_remote_shards()
    {
        routing_.for_each_entering(rank_, [&](int source, Extent whole) {
            const int sender = routing_.previous_hop(source, node_);
            routing_.for_each_chunk(whole, [&](Extent slice) {
                const std::uint32_t arrived = add(Op::Kind::await_data, Level::rail, sender);
                plan_.ops[arrived].count = ++received_[sender];
                const std::uint32_t received =
                    shape_.bounce ? copy(Place::bounce, Place::receive, slice, {arrived}) : arrived;
                routing_.for_each_next_hop(rank_, source, [&](int next) {
                    Peer& peer = rail_peer(next);
                    put(Level::rail, next, peer, source, slice, {arrived});
                });
                for_each_node_target([&](int target) {
                    put(Level::node, target, local_[target], source, slice, {received});
                });
            });
        });
    }

    // A node peer pushes its own shard and all that entered there.
    std::uint32_t node_puts_of(int rank) const
    {
        std::uint32_t count = routing_.own_pushes(rank);
        routing_.for_each_entering(rank,
                                   [&](int, Extent slice) { count += routing_.chunks(slice); });
        return count;
    }

    void await_node()
    {
        for_each_node_peer([&](int rank) {
            const std::uint32_t count = node_puts_of(rank);
            if (count > 0) plan_.ops[add(Op::Kind::await_data, Level::node, rank)].count = count;
        });
    }

    void drain()
    {
        for (const auto& [rank, peer] : rail_)
            add(Op::Kind::drain, Level::rail, rank, {peer.last_put});
    }

    const Topology& topo_;
    const AllgatherShape& shape_;
    AllgatherRouting routing_;
    int rank_;
    int node_;
    Plan plan_;
    std::map<int, Peer> rail_;
    std::map<int, Peer> local_;                        // every_peer for published calls
    Dependencies own_copies_;                          // ops
    std::map<int, std::uint32_t> received_;            // per rail sender
    std::map<std::size_t, std::uint32_t> copied_out_;  // op, by the offset of the chunk
};

}  // namespace

Plan plan_allgather(const Topology& topology, int rank, const AllgatherShape& shape)
{
    return AllgatherPlanner(topology, rank, shape).plan();
}

}  // namespace hier
