// SPDX-License-Identifier: BSD-3-Clause
// The ranks between which the shards of an allgather travel, by route. Every rank derives the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "coll/allgather/spread.hpp"

namespace hier {

// Refers to both arguments of the constructor.
class AllgatherRouting {
public:
    AllgatherRouting(const Topology& topology, const AllgatherShape& shape)
        : topo_(topology), shape_(shape), spread_(topology, shape.shards, shape.spread)
    {
    }

    Extent shard(int rank) const { return shape_.shards[static_cast<std::size_t>(rank)]; }
    std::uint32_t chunks(Extent whole) const { return cuts(whole, shape_.chunk); }
    template <class F> void for_each_chunk(Extent whole, F f) const
    {
        for_each_cut(whole, shape_.chunk, f);
    }
    // The part of its shard that a rank puts and pushes to all ranks itself.
    Extent kept(int rank) const { return spread_.kept(rank); }
    // The parts that ranks of the rank's node hand over to others: f(handover).
    template <class F> void for_each_handover(int rank, F f) const
    {
        for (const Handover& h : spread_.handovers(topo_.node_of(rank))) f(h);
    }
    // The puts that bring such a part to its carrier, or from there to another rank. On a single
    // node that is one.
    std::uint32_t part_chunks(Extent part) const { return cuts(part, part_chunk(part)); }
    template <class F> void for_each_part_chunk(Extent part, F f) const
    {
        for_each_cut(part, part_chunk(part), f);
    }
    // The order in which ranks of the only node take turns. Empty: they do not.
    std::span<const int> turns() const { return spread_.turns(); }
    bool is_balanced() const { return !turns().empty(); }
    // What a rank pushes to `peer` in its turn.
    std::size_t bytes_in_turn(int rank, int peer) const
    {
        std::size_t bytes = kept(rank).length;
        for_each_handover(rank, [&](const Handover& h) {
            if (h.carrier == rank && h.owner != peer) bytes += h.part.length;
        });
        return bytes;
    }
    // Which of the node's ranks hand over parts, by team rank.
    std::set<int> owners(int rank) const
    {
        std::set<int> all;
        for_each_handover(rank, [&](const Handover& h) { all.insert(h.owner); });
        return all;
    }
    // Do the shards of the only node go round a ring?
    bool is_ring() const { return spread_.ring_chunk() > 0; }
    int right_of(int rank) const { return in_ring(rank, 1); }
    int left_of(int rank) const { return in_ring(rank, topo_.size() - 1); }
    std::uint32_t ring_chunks(int source) const
    {
        return cuts(shard(source), spread_.ring_chunk());
    }
    template <class F> void for_each_ring_chunk(int source, F f) const
    {
        for_each_cut(shard(source), spread_.ring_chunk(), f);
    }
    // Cuts of the own shard for pushes inside the node. The shard is there from the start and
    // nobody hands it on, so a cut does not make it end earlier.
    std::uint32_t own_pushes(int rank) const { return cuts(kept(rank), own_push(rank)); }
    template <class F> void for_each_own_copy(int rank, F f) const
    {
        const Extent own = shard(rank);
        for_each_cut(own, shape_.copy_whole ? std::max<std::size_t>(own.length, 1) : shape_.chunk,
                     f);
    }
    template <class F> void for_each_own_push(int rank, F f) const
    {
        for_each_cut(kept(rank), own_push(rank), f);
    }
    // How many puts a rank makes to another one of its node: what it keeps of its own shard, what
    // enters the node there, and what it hands over to that rank or carries.
    std::uint32_t node_puts(int rank, int peer) const
    {
        std::uint32_t count = own_pushes(rank);
        for_each_entering(rank, [&](int, Extent slice) { count += chunks(slice); });
        for_each_handover(rank, [&](const Handover& h) {
            const bool is_to_carrier = h.owner == rank && h.carrier == peer;
            const bool is_by_carrier = h.carrier == rank && h.owner != peer;
            if (is_to_carrier || is_by_carrier) count += part_chunks(h.part);
        });
        return count + (tells(rank, peer) ? 1 : 0);
    }
    // In a balanced call: does this rank tell `peer` by an empty put that it has handed over its
    // parts? Carriers know.
    bool tells(int rank, int peer) const
    {
        if (!is_balanced()) return false;
        bool is_owner = false, is_to_carrier = false;
        for_each_handover(rank, [&](const Handover& h) {
            if (h.owner != rank) return;
            is_owner = true;
            is_to_carrier = is_to_carrier || h.carrier == peer;
        });
        return is_owner && !is_to_carrier;
    }
    // The shards of a node. Shards that lie side by side are one slice.
    std::vector<Extent> bundle(int node) const;
    // Does this rank put its node's bundle to another node?
    bool leads(int rank) const;
    // Does a put of `rank` to this target reach a rank that leads?
    bool reaches_a_leader(int rank, int target) const;
    // The rank that sends the shard of `source`, or the bundle of the leader `source`, to `node`.
    int previous_hop(int source, int node) const;

    // The other ranks of the rank's node, in staggered order: at no time do all ranks put to the
    // same.
    template <class F> void for_each_node_peer(int rank, F f) const
    {
        const auto ranks = topo_.ranks_on(topo_.node_of(rank));
        const auto me = static_cast<std::size_t>(topo_.local_of(rank));
        for (std::size_t i = 1; i < ranks.size(); i++) f(ranks[(me + i) % ranks.size()]);
    }
    bool has_node_peers(int rank) const { return topo_.ranks_on(topo_.node_of(rank)).size() > 1; }
    // The targets of the rank's puts on its node: each of its peers, or all of them at once.
    template <class F> void for_each_node_target(int rank, F f) const
    {
        if (!shape_.publish) return for_each_node_peer(rank, f);
        if (has_node_peers(rank)) f(Op::every_peer);
    }

    // The ranks to which `holder` sends the shard of `source` on its rail: f(rank).
    template <class F> void for_each_next_hop(int holder, int source, F f) const
    {
        const int nodes = topo_.nodes();
        const int node = topo_.node_of(holder);
        if (shape_.route == Route::ring) {
            const int next = (node + 1) % nodes;
            if (next != topo_.node_of(source)) f(topo_.entry(source, next));
        } else if (shape_.route == Route::direct && source == holder) {
            for (int i = 1; i < nodes; i++) f(topo_.entry(source, (node + i) % nodes));
        }
    }

    // The shards and bundles that enter the node of `rank` at `rank`: f(source, slice). The source
    // is the owner of the slice, its carrier, or the leader that bundled it. The nearest node
    // backwards comes first. A ring delivers in this order, and a staggered exchange does too.
    template <class F> void for_each_entering(int rank, F f) const
    {
        const int nodes = topo_.nodes();
        const int node = topo_.node_of(rank);
        for (int i = 1; i < nodes; i++) {
            const int from = (node + nodes - i) % nodes;
            if (shape_.route == Route::bundles) {
                const int leader = topo_.leader(from, node);
                if (topo_.entry(leader, node) != rank) continue;
                for (const Extent slice : bundle(from)) f(leader, slice);
                continue;
            }
            // On the rail of this rank alone: that is every so many ranks of a node.
            const auto sources = topo_.ranks_on(from);
            const auto rails = static_cast<std::size_t>(topo_.rails());
            for (auto l = static_cast<std::size_t>(topo_.rail_of(rank)); l < sources.size();
                 l += rails) {
                const int source = sources[l];
                if (topo_.entry(source, node) != rank) continue;
                if (kept(source).length > 0) f(source, kept(source));
                for_each_handover(source, [&](const Handover& h) {
                    if (h.carrier == source) f(source, h.part);
                });
            }
        }
    }

private:
    static std::uint32_t cuts(Extent whole, std::size_t most)
    {
        return static_cast<std::uint32_t>((whole.length + most - 1) / most);
    }
    template <class F> static void for_each_cut(Extent whole, std::size_t most, F f)
    {
        for (std::size_t done = 0; done < whole.length; done += most)
            f(Extent{whole.offset + done, std::min(most, whole.length - done)});
    }
    int in_ring(int rank, int steps) const
    {
        const auto ranks = topo_.ranks_on(topo_.node_of(rank));
        const int local = topo_.local_of(rank) + steps;
        return ranks[static_cast<std::size_t>(local) % ranks.size()];
    }
    std::size_t part_chunk(Extent part) const
    {
        return topo_.nodes() == 1 ? part.length : shape_.chunk;
    }
    std::size_t own_push(int rank) const
    {
        return shape_.own_whole ? std::max<std::size_t>(shard(rank).length, 1) : shape_.chunk;
    }
    const Topology& topo_;
    const AllgatherShape& shape_;
    AllgatherSpread spread_;
};

// The members of its rail with which a rank ever exchanges anything, whatever the route and the
// bytes. These are all members on other nodes, unless nodes are uneven and a rail has several ranks
// of one node.
std::vector<bool> allgather_partners(const Topology& topology, int rank);

}  // namespace hier
