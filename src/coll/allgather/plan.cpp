// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical allgather, both levels at once.
//
//            node 0                     node 1
//        r0 ---- push ---- r1       r2 ---- push ---- r3
//         |                 |        |                 |
//         +------ rail 0 ---|--------+                 |
//                           +------- rail 1 -----------+
//
//   1. announce: tell the ranks that will write here that they may
//   2. put the own shard, chunk by chunk, to its entry rank on every other node (direct), or on
//      the next node only (ring)
//   3. at the same time push the own shard to the node's other ranks
//   4. push each chunk of a remote shard that lands to the node's other ranks; in a ring, also put
//      the chunk to the next node
//
// N nodes, G ranks a node, S bytes a shard. Each rail carries (N-1)*S in and out, the minimum; each
// rank pushes (G-1)*N*S. Time ~ max(rail, push) + one chunk's fan-out. Peers are taken in staggered
// order, so that at no time all ranks write to the same one.
//
// A rank whose network reaches only its bounce buffer. Other ranks may not need one.
//
//     send or receive -- copy --> bounce -- 2 --> peer            the own shard, chunk by chunk
//                        peer --> bounce -- copy --> receive -- 4 --> the node's other ranks
//                                    \------ 4, ring --> next node
//
// Such a rank copies its own S bytes out, once for all next hops. It copies in what enters at it,
// which is (N-1)*S on even nodes. Only the copy out delays the rail, by one chunk. The bounce buffer
// holds these bytes alone, packed (bounce.hpp).
//
// Bundles, for shards so small that messages cost more than bytes. A node's shards go to each other
// node in one message, from one rank here to one rank there. A rank has (N-1)/G messages instead of
// N-1, for one hop more.
//
//     r0, r1 -- push --> leader for node 1 -- put {r0, r1} --> its entry rank -- push --> r2, r3
//
// Eager calls: small shards are put without waiting for the peer, and nobody announces. That saves
// a hop. A rank that waits for data also waits until the sender is in the call, so that a report
// can name a late sender.
//
// Published calls: on its node a rank puts each block once, to a place where all others read. The put
// waits for nobody, unless the transport lets a peer copy the block out of this rank's own memory.
//
// Eager and published puts come without announcements. A rank that has ended such a call still
// knows that its partners have entered the call, because it has data from them. A rank with an
// empty shard sends a word in place of data (enter), and the others wait for the word
// (await_entered).
//
// Shards of different sizes (spread.hpp). A rank with a large shard hands parts of it over to ranks
// of its node, which put and push them in its place. Or the shards of a single node go round a ring
// of all ranks.
//
// Source of the algorithm: the two-level allgather of Traeff, Ripke, Siebert et al. with one leader
// per local rank (multi-leader / multi-rail), pipelined by chunk.
#include "coll/allgather/plan.hpp"

#include <algorithm>
#include <map>

#include "coll/allgather/bounce.hpp"
#include "coll/allgather/in_order.hpp"
#include "coll/allgather/routing.hpp"
#include "coll/common/plan_writer.hpp"

namespace hier {
namespace {

bool meet(Extent a, Extent b)
{
    return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

bool is_within(Extent part, Extent whole)
{
    return part.offset >= whole.offset && part.offset + part.length <= whole.offset + whole.length;
}

class AllgatherPlanner {
public:
    AllgatherPlanner(const Topology& topology, int rank, const AllgatherShape& shape)
        : topo_(topology), shape_(shape), routing_(topology, shape), rank_(rank),
          node_(topology.node_of(rank)),
          bounce_(shape.bounce ? allgather_bounce(topology, routing_, shape.route, rank)
                               : AllgatherBounce{}),
          writer_(rank,
                  {.own = routing_.shard(rank),
                   .in_place = shape.in_place,
                   .bounce = shape.bounce ? &bounce_.layout : nullptr},
                  shape.depth)
    {
    }

    Plan plan()
    {
        announce_on_rail();
        if (routing_.has_node_peers(rank_)) announce_on_node();
        if (routing_.is_ring()) {
            go_round();
        } else if (routing_.is_balanced()) {
            move_balanced();
        } else {
            move_shards();
        }
        Plan plan = std::move(writer_).take();
        plan.bounce_bytes = bounce_.layout.bytes();
        plan.bounce_places = std::move(bounce_.places);
        return plan;
    }

private:
    using Dependencies = PlanWriter::Dependencies;

    void move_shards()
    {
        hand_over();
        if (!bundles()) put_own_shard_on_rail();
        push_own_shard();
        carry();
        copy_own_shard();
        if (bundles() && routing_.leads(rank_)) put_bundles();
        take_remote_shards();
        await_node();
        drain();
    }

    Extent shard(int rank) const { return routing_.shard(rank); }
    bool bundles() const { return shape_.route == Route::bundles; }

    // Before the first put to this rank: waits until the rank may be written to.
    void open_rail(int rank)
    {
        const bool is_new = last_rail_put_.try_emplace(rank).second;
        if (is_new && !shape_.eager)
            writer_.hold_puts(Level::rail, rank,
                              {writer_.add(Op::Kind::await_announced, Level::rail, rank)});
        if (is_new && shape_.eager && shard(rank).length == 0)
            writer_.add(Op::Kind::await_entered, Level::rail, rank);
    }

    void put_on_rail(int rank, Extent chunk, bool is_own, Dependencies after)
    {
        last_rail_put_[rank] = writer_.put(Level::rail, rank, chunk, is_own, std::move(after));
    }

    // Tells the ranks that write here that they may.
    void announce_on_rail()
    {
        std::vector<bool> is_told(static_cast<std::size_t>(topo_.size()));
        routing_.for_each_entering(rank_, [&](int source, Extent) {
            const int sender = routing_.previous_hop(source, node_);
            const auto index = static_cast<std::size_t>(sender);
            if (is_told[index]) return;
            is_told[index] = true;
            writer_.add(shape_.eager ? Op::Kind::await_entered : Op::Kind::announce, Level::rail,
                        sender);
            if (shape_.eager && shard(rank_).length == 0) enter_on_rail(sender);
        });
    }

    void enter_on_rail(int peer)
    {
        const std::uint32_t entered = writer_.add(Op::Kind::enter, Level::rail, peer);
        writer_.add(Op::Kind::drain, Level::rail, peer, {entered});
    }

    // The same on the node. A rank also waits until its node's other ranks are in the call. One that publishes proves that
    // by its own block. If it has none, it must not wait for bytes of another node that it passes on: in a mixed call some
    // peers put nothing to it before they know.
    void announce_on_node()
    {
        if (!shape_.publish) writer_.add(Op::Kind::announce, Level::node, Op::every_peer);
        if (shape_.publish && routing_.own_pushes(rank_) == 0)
            writer_.add(Op::Kind::enter, Level::node, Op::every_peer);
        routing_.for_each_node_peer(rank_, [&](int rank) {
            if (shape_.publish) {
                writer_.add(Op::Kind::await_entered, Level::node, rank);
            } else {
                writer_.hold_puts(Level::node, rank,
                                  {writer_.add(Op::Kind::await_announced, Level::node, rank)});
            }
        });
    }

    void put_own_shard_on_rail()
    {
        routing_.for_each_next_hop(rank_, rank_, [&](int next) {
            routing_.for_each_chunk(routing_.kept(rank_), [&](Extent chunk) {
                open_rail(next);
                Dependencies after;
                if (shape_.bounce) after.push_back(writer_.copy_out(writer_.own_place(), chunk));
                put_on_rail(next, chunk, true, std::move(after));
            });
        });
    }

    // Puts to a rank that passes them on, which may be on their way at a time. Most puts of a
    // core are over when they return.
    std::size_t window() const { return shape_.spread.by_cores ? 1 : 2; }

    // Pushes what others carry to them, before all else.
    void hand_over()
    {
        routing_.for_each_handover(rank_, [&](const Handover& h) {
            if (h.owner != rank_) return;
            PutsInOrder row(writer_, h.carrier, window());
            routing_.for_each_part_chunk(
                h.part, [&](Extent chunk) { handed_over_ = {row.put(chunk, true)}; });
            row.end();
            last_carrier_ = h.carrier;
        });
    }

    // Puts and pushes what others have handed over, in place of its owner.
    void carry()
    {
        routing_.for_each_handover(rank_, [&](const Handover& h) {
            if (h.carrier != rank_) return;
            ArrivalsInOrder row(writer_, h.owner, 0, routing_.part_chunks(h.part), window());
            routing_.for_each_part_chunk(
                h.part, [&](Extent chunk) { carry_chunk(h.owner, chunk, row.take()); });
        });
    }

    // Sends to the right what comes from the left, but not what is owned there.
    void go_round()
    {
        const int left = routing_.left_of(rank_), right = routing_.right_of(rank_);
        PutsInOrder own(writer_, right, window());
        routing_.for_each_ring_chunk(rank_,
                                     [&](Extent chunk) { handed_over_ = {own.put(chunk, true)}; });
        own.end();
        copy_own_shard();
        std::uint32_t before = 0;
        for (int source = left; source != right; source = routing_.left_of(source)) {
            const std::uint32_t all = routing_.ring_chunks(source);
            ArrivalsInOrder arrivals(writer_, left, before, all, window());
            before += all;
            const bool ends_there = routing_.left_of(source) == right;
            PutsInOrder row(writer_, right, ends_there ? PutsInOrder::no_window : window());
            routing_.for_each_ring_chunk(
                source, [&](Extent chunk) { row.put(chunk, false, {arrivals.take()}); });
            row.end();
        }
        // Nobody passes on the last shard that comes from the left.
        if (routing_.ring_chunks(right) > 0)
            writer_.await_data(Level::node, left, before + routing_.ring_chunks(right));
    }

    // All ranks begin to push when they know that all parts have been handed over. A part, or an
    // empty put in its place, is the first put of its pair.
    void move_balanced()
    {
        Dependencies handed_over;
        routing_.for_each_handover(rank_, [&](const Handover& h) {
            if (h.owner != rank_) return;
            handed_over.push_back(writer_.put(Level::node, h.carrier, h.part, true));
        });
        routing_.for_each_node_peer(rank_, [&](int peer) {
            if (routing_.tells(rank_, peer)) writer_.empty_put(peer, handed_over);
        });
        handed_over_ = handed_over;
        copy_own_shard();
        Dependencies balanced = handed_over;
        for (const int owner : routing_.owners(rank_))
            if (owner != rank_) balanced.push_back(writer_.await_data(Level::node, owner, 1));
        take_turns(std::move(balanced));
    }

    void take_turns(Dependencies after)
    {
        const std::span<const int> turns = routing_.turns();
        const std::size_t all = turns.size();
        const auto me =
            static_cast<std::size_t>(std::find(turns.begin(), turns.end(), rank_) - turns.begin());
        for (std::size_t step = 1; step < all; step++) {
            const int to = turns[(me + step) % all], from = turns[(me + all - step) % all];
            push_in_turn(to, after);
            const std::uint32_t puts = routing_.node_puts(from, rank_);
            if (puts == 0) continue;
            const std::uint32_t arrived = writer_.await_data(Level::node, from, puts);
            // To wait costs a start.
            const std::size_t in_time = routing_.bytes_in_turn(rank_, to) + shape_.spread.start;
            if (in_time < routing_.bytes_in_turn(from, rank_)) after.push_back(arrived);
        }
    }

    void push_in_turn(int peer, const Dependencies& after)
    {
        routing_.for_each_own_push(
            rank_, [&](Extent chunk) { writer_.put(Level::node, peer, chunk, true, after); });
        routing_.for_each_handover(rank_, [&](const Handover& h) {
            if (h.carrier == rank_ && h.owner != peer)
                writer_.put(Level::node, peer, h.part, false, after);
        });
    }

    void carry_chunk(int owner, Extent chunk, std::uint32_t arrived)
    {
        routing_.for_each_next_hop(rank_, rank_, [&](int next) {
            open_rail(next);
            Dependencies after{arrived};
            if (shape_.bounce) after = {writer_.copy_out(Place::receive, chunk, after)};
            put_on_rail(next, chunk, false, std::move(after));
        });
        routing_.for_each_node_peer(rank_, [&](int peer) {
            if (peer != owner) writer_.put(Level::node, peer, chunk, false, {arrived});
        });
    }

    void push_own_shard()
    {
        std::map<int, Dependencies> pushes;  // by target: a leader, or all ranks of the node
        routing_.for_each_own_push(rank_, [&](Extent chunk) {
            routing_.for_each_node_target(rank_, [&](int target) {
                // Later puts to a carrier wait for what it carries in any case.
                const bool waits = target != last_carrier_;
                const std::uint32_t push = writer_.put(Level::node, target, chunk, true,
                                                       waits ? pushed_first() : Dependencies());
                if (bundles() && routing_.reaches_a_leader(rank_, target))
                    pushes[target].push_back(push);
            });
        });
        // A leader knows only how many puts have come from a rank. So later puts wait for these.
        for (auto& [target, ops] : pushes) writer_.hold_puts(Level::node, target, std::move(ops));
    }

    void copy_own_shard()
    {
        if (shape_.in_place) return;
        // A core first sends what others wait for. Copy engines do both at a time.
        const Dependencies after = shape_.copy_whole ? Dependencies() : pushed_first();
        routing_.for_each_own_copy(rank_, [&](Extent chunk) {
            own_copies_.push_back(writer_.copy(Place::send, Place::receive, chunk, after));
        });
    }

    // On a single node: the last of the puts for which ranks wait that pass them on.
    Dependencies pushed_first() const { return topo_.nodes() == 1 ? handed_over_ : Dependencies(); }

    // A leader puts the bundle of its own node.
    void put_bundles()
    {
        std::map<int, std::uint32_t> arrivals;  // the awaits of node peers' shards, by rank
        routing_.for_each_node_peer(rank_, [&](int rank) {
            if (shard(rank).length > 0)
                arrivals[rank] = writer_.await_data(Level::node, rank, routing_.own_pushes(rank));
        });
        for (int i = 1; i < topo_.nodes(); i++) {
            const int to = (node_ + i) % topo_.nodes();
            if (topo_.leader(node_, to) != rank_) continue;
            for (const Extent whole : routing_.bundle(node_)) {
                routing_.for_each_chunk(whole, [&](Extent chunk) {
                    put_part_of_bundle(topo_.entry(rank_, to), chunk, arrivals);
                });
            }
        }
    }

    void put_part_of_bundle(int next, Extent chunk, const std::map<int, std::uint32_t>& arrivals)
    {
        open_rail(next);
        const bool is_own = is_within(chunk, shard(rank_));
        Dependencies after;
        if (!is_own) after = arrivals_of(chunk, arrivals);
        if (shape_.bounce)
            after = {writer_.copy_out(is_own ? writer_.own_place() : Place::receive, chunk, after)};
        put_on_rail(next, chunk, is_own, std::move(after));
    }

    // The operations that bring a part of the own node's bundle into the receive buffer.
    Dependencies arrivals_of(Extent part, const std::map<int, std::uint32_t>& arrivals) const
    {
        Dependencies after;
        for (const auto& [rank, arrived] : arrivals)
            if (meet(part, shard(rank))) after.push_back(arrived);
        for (const std::uint32_t op : own_copies_)
            if (meet(part, writer_.target_of(op))) after.push_back(op);
        return after;
    }

    void take_remote_shards()
    {
        std::map<int, std::uint32_t> received;  // chunks, by rail sender
        routing_.for_each_entering(rank_, [&](int source, Extent whole) {
            const int sender = routing_.previous_hop(source, node_);
            routing_.for_each_chunk(whole, [&](Extent chunk) {
                take_remote_chunk(source, chunk,
                                  writer_.await_data(Level::rail, sender, ++received[sender]));
            });
        });
    }

    void take_remote_chunk(int source, Extent chunk, std::uint32_t arrived)
    {
        const std::uint32_t received =
            shape_.bounce ? writer_.copy(Place::bounce, Place::receive, chunk, {arrived}) : arrived;
        routing_.for_each_next_hop(rank_, source, [&](int next) {
            open_rail(next);
            put_on_rail(next, chunk, false, {arrived});
        });
        routing_.for_each_node_target(
            rank_, [&](int target) { writer_.put(Level::node, target, chunk, false, {received}); });
    }

    void await_node()
    {
        routing_.for_each_node_peer(rank_, [&](int rank) {
            const std::uint32_t count = routing_.node_puts(rank, rank_);
            if (count > 0) writer_.await_data(Level::node, rank, count);
        });
    }

    void drain()
    {
        for (const auto& [rank, last_put] : last_rail_put_)
            writer_.add(Op::Kind::drain, Level::rail, rank, {last_put});
    }

    const Topology& topo_;
    const AllgatherShape& shape_;
    AllgatherRouting routing_;
    int rank_;
    int node_;
    AllgatherBounce bounce_;
    PlanWriter writer_;
    std::map<int, std::uint32_t> last_rail_put_;  // by peer
    Dependencies own_copies_;
    Dependencies handed_over_;  // the last such put
    int last_carrier_ = -1;     // gets it
};

}  // namespace

Plan plan_allgather(const Topology& topology, int rank, const AllgatherShape& shape)
{
    return AllgatherPlanner(topology, rank, shape).plan();
}

}  // namespace hier
