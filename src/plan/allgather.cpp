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
// A rank whose network reaches only its landing buffer (it need not be so on every rank):
//
//     send or receive -- copy --> landing -- 2 --> peer            the own shard, chunk by chunk
//                        peer --> landing -- copy --> receive -- 4 --> the node's other ranks
//                                    \------ 4, ring --> next node
//
// It copies its own S bytes out, once for all next hops, and the (N-1)*S of its rail in. (G ranks a
// node again; uneven nodes: what enters at it.) Only the copy out delays its rail, by one chunk.
//
// Small shards are put without waiting for the peer's announcement (eager): one hop. Its coming is
// awaited all the same, for who waits should know for whom.
//
// Source of the algorithm: the two-level allgather of Traeff, Ripke, Siebert et al. with one leader
// per local rank (multi-leader / multi-rail), pipelined by chunk.
#include <algorithm>
#include <map>

#include "hier/plan.hpp"

namespace hier {
namespace {

class AllgatherPlanner {
public:
    AllgatherPlanner(const Topology& topology, int rank, const AllgatherShape& shape)
        : topo_(topology), shape_(shape), rank_(rank), node_(topology.node_of(rank))
    {
        plan_.depth = shape.depth;
    }

    Plan plan()
    {
        announce();
        put_own_shard_on_rail();
        push_own_shard();
        copy_own_shard();
        take_remote_shards();
        await_node();
        drain();
        return std::move(plan_);
    }

private:
    using Dependencies = std::vector<std::uint32_t>;
    struct Peer {
        std::uint32_t ready;     // the op that waits for its announcement
        std::uint32_t last_put;  // op
        std::uint32_t puts = 0;
    };

    std::uint32_t add(Op::Kind kind, Level level, int peer, const Dependencies& after = {})
    {
        Op op{};
        op.kind = kind;
        op.level = level;
        op.from = op.to = Place::receive;
        op.peer = peer;
        op.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size());
        op.dependencies = static_cast<std::uint32_t>(after.size());
        plan_.dependencies.insert(plan_.dependencies.end(), after.begin(), after.end());
        plan_.ops.push_back(op);
        return static_cast<std::uint32_t>(plan_.ops.size() - 1);
    }

    Slice shard(int rank) const { return shape_.shards[static_cast<std::size_t>(rank)]; }

    template <class F> void for_each_chunk(int owner, F f) const
    {
        const Slice whole = shard(owner);
        for (std::size_t done = 0; done < whole.length; done += shape_.chunk) {
            f(Slice{whole.offset + done, std::min(shape_.chunk, whole.length - done)});
        }
    }

    template <class F> void for_each_node_peer(F f) const
    {
        const auto ranks = topo_.ranks_on(node_);
        const std::size_t me = static_cast<std::size_t>(topo_.local_of(rank_));
        for (std::size_t i = 1; i < ranks.size(); i++) f(ranks[(me + i) % ranks.size()]);
    }

    // Where this rank, holding the shard of `source`, sends it on its rail.
    template <class F> void for_each_next_hop(int source, F f) const
    {
        const int nodes = topo_.nodes();
        if (shape_.route == Route::ring) {
            const int next = (node_ + 1) % nodes;
            if (next != topo_.node_of(source)) f(topo_.entry(source, next));
        } else if (source == rank_) {
            for (int i = 1; i < nodes; i++) f(topo_.entry(source, (node_ + i) % nodes));
        }
    }

    // Who sends the shard of `source` to this node.
    int previous_hop(int source) const
    {
        if (shape_.route == Route::direct) return source;
        return topo_.entry(source, (node_ + topo_.nodes() - 1) % topo_.nodes());
    }

    // The remote shards that enter this node at this rank. Nearest node backwards first, which is
    // the order in which a ring delivers them and in which a staggered direct exchange does; every
    // rank of a channel derives the same order.
    template <class F> void for_each_entering_source(F f) const
    {
        const int nodes = topo_.nodes();
        for (int i = 1; i < nodes; i++) {
            for (const int source : topo_.ranks_on((node_ + nodes - i) % nodes)) {
                if (shard(source).length > 0 && topo_.entry(source, node_) == rank_) f(source);
            }
        }
    }

    Peer& rail_peer(int rank)
    {
        const auto [it, is_new] = rail_.try_emplace(rank);
        if (is_new) it->second.ready = add(Op::Kind::await_ready, Level::rail, rank);
        return it->second;
    }

    Place own_place() const { return shape_.in_place ? Place::receive : Place::send; }

    Place place_of(Level level, int owner) const
    {
        if (level == Level::rail && shape_.landing) return Place::landing;
        return owner == rank_ ? own_place() : Place::receive;
    }

    void put(Level level, int peer_rank, Peer& peer, int owner, Slice slice, Dependencies after)
    {
        if (level == Level::node || !shape_.eager) after.push_back(peer.ready);
        const std::uint32_t op = add(Op::Kind::put, level, peer_rank, after);
        plan_.ops[op].slice = slice;
        plan_.ops[op].count = ++peer.puts;
        plan_.ops[op].from = place_of(level, owner);
        peer.last_put = op;
    }

    std::uint32_t copy(Place from, Place to, Slice slice, const Dependencies& after = {})
    {
        const std::uint32_t op = add(Op::Kind::copy, Level::node, rank_, after);
        plan_.ops[op].slice = slice;
        plan_.ops[op].from = from;
        plan_.ops[op].to = to;
        return op;
    }

    // One copy, however many next hops the chunk has.
    std::uint32_t copy_out(Slice own_chunk)
    {
        const auto [it, is_new] = copied_out_.try_emplace(own_chunk.offset);
        if (is_new) it->second = copy(own_place(), Place::landing, own_chunk);
        return it->second;
    }

    void announce()
    {
        std::vector<int> told;
        for_each_entering_source([&](int source) {
            const int sender = previous_hop(source);
            if (std::find(told.begin(), told.end(), sender) != told.end()) return;
            told.push_back(sender);
            const std::uint32_t op = add(Op::Kind::announce, Level::rail, sender);
            if (shape_.eager) told_[sender] = op;
        });
        if (topo_.ranks_on(node_).size() > 1) {
            add(Op::Kind::announce, Level::node, Op::every_peer);
            for_each_node_peer([&](int rank) {
                local_[rank].ready = add(Op::Kind::await_ready, Level::node, rank);
            });
        }
    }

    void put_own_shard_on_rail()
    {
        for_each_next_hop(rank_, [&](int next) {
            for_each_chunk(rank_, [&](Slice slice) {
                Peer& peer = rail_peer(next);
                Dependencies after;
                if (shape_.landing) after.push_back(copy_out(slice));
                put(Level::rail, next, peer, rank_, slice, std::move(after));
            });
        });
    }

    void push_own_shard()
    {
        for_each_chunk(rank_, [&](Slice slice) {
            for_each_node_peer([&](int rank) {
                Peer& peer = local_[rank];
                put(Level::node, rank, peer, rank_, slice, {});
            });
        });
    }

    void copy_own_shard()
    {
        if (shape_.in_place) return;
        for_each_chunk(rank_, [&](Slice slice) { copy(Place::send, Place::receive, slice); });
    }

    void take_remote_shards()
    {
        for_each_entering_source([&](int source) {
            const int sender = previous_hop(source);
            for_each_chunk(source, [&](Slice slice) {
                const std::uint32_t arrived = add(Op::Kind::await_data, Level::rail, sender);
                plan_.ops[arrived].count = ++received_[sender];
                const std::uint32_t received =
                    shape_.landing ? copy(Place::landing, Place::receive, slice, {arrived})
                                   : arrived;
                for_each_next_hop(source, [&](int next) {
                    Peer& peer = rail_peer(next);
                    put(Level::rail, next, peer, source, slice, {arrived});
                });
                for_each_node_peer([&](int rank) {
                    Peer& peer = local_[rank];
                    put(Level::node, rank, peer, source, slice, {received});
                });
            });
        });
    }

    // A node peer pushes its own shard and every remote one that entered there.
    void await_node()
    {
        std::map<int, std::uint32_t> counts;
        for (int source = 0; source < topo_.size(); source++) {
            const std::size_t chunks = (shard(source).length + shape_.chunk - 1) / shape_.chunk;
            counts[topo_.entry(source, node_)] += static_cast<std::uint32_t>(chunks);
        }
        for_each_node_peer([&](int rank) {
            if (counts[rank] == 0) return;
            plan_.ops[add(Op::Kind::await_data, Level::node, rank)].count = counts[rank];
        });
    }

    void drain()
    {
        // Eager: no data is later than our announcement, which might stay with us.
        std::map<int, Dependencies> last;
        for (const auto& [rank, announced] : told_) last[rank].push_back(announced);
        for (const auto& [rank, peer] : rail_) last[rank].push_back(peer.last_put);
        for (const auto& [rank, ops] : last) add(Op::Kind::drain, Level::rail, rank, ops);
    }

    const Topology& topo_;
    const AllgatherShape& shape_;
    int rank_;
    int node_;
    Plan plan_;
    std::map<int, Peer> rail_;
    std::map<int, Peer> local_;
    std::map<int, std::uint32_t> told_;                // eager: the op that announces to a rank
    std::map<int, std::uint32_t> received_;            // per rail sender
    std::map<std::size_t, std::uint32_t> copied_out_;  // op, by the offset of the chunk
};

}  // namespace

Plan plan_allgather(const Topology& topology, int rank, const AllgatherShape& shape)
{
    return AllgatherPlanner(topology, rank, shape).plan();
}

std::vector<Slice> equal_shards(int ranks, std::size_t bytes_per_rank)
{
    std::vector<Slice> shards;
    shards.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; r++)
        shards.push_back({static_cast<std::size_t>(r) * bytes_per_rank, bytes_per_rank});
    return shards;
}

}  // namespace hier
