// SPDX-License-Identifier: BSD-3-Clause
// Runs the plans of all ranks over symbolic buffers, in random legal order, and rejects every wrong
// plan.
//
// The model assumes only what the transports promise:
//
// Operations
//   - Ready operations run in any order. But the puts of a rail pair are issued in the order of
//     their counts.
//   - A rank returns when all of its operations are done.
// Puts
//   - A put lands in parts, and its signal lands after that.
//   - On a rail pair payloads and signals each keep their order. On a node pair nothing keeps its
//     order, and the receiver sees only how many puts came. But a put that was issued when another
//     one was done is seen after that one.
//   - A put is done at any time after it was issued, before or after it lands. Then its source may
//     be reused.
//   - A put to all of a node is as many puts, each at its own speed.
//   - In calls that take early puts, a rank may be one call behind those that put to it, not two.
// Buffers
//   - A copy goes on in parts after it was started. Its target may be read when the copy is done.
//   - A put or a copy reads its source at any moment from its start until it is done. The bytes
//     must be there from the start. They stay until the rank returns, because nothing is written
//     twice.
//   - There is one bounce buffer for all calls. Peers write into it as soon as the next call
//     announces it, and its old contents are lost. A put lands at the sender's place in it, behind
//     what the sender has put before. So its bytes have other places than in a receive buffer.
// Progress
//   - A rank that is outside a collective makes no progress. Its transfers on a rail wait for its
//     next call.
//   - A drain covers the puts that were issued before it. When these have landed, the drain needs
//     nothing more of the target. A transport whose acknowledgements need the target's progress
//     must see to that itself. Words that were sent to the target before the drain land without
//     the rank.
//
// A network that does not keep these promises is another kind of schedule, and is rejected
// (test_network.cpp). Failing transfers are not modelled: the executor reports them, not the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "hier/plan.hpp"

namespace hier::model {

// The bytes of the result that an operation of a rank moves, by their home. `own` is the rank's shard.
Extent home_of(const Op& op, Extent own);

// One collective as all ranks call it.
struct Call {
    std::vector<Extent> shards;
    std::size_t chunk = 1;
    Route route = Route::direct;
    std::vector<bool> in_place;  // by rank
    std::vector<bool> bounce;    // by rank
    bool eager = false;          // the network keeps puts that come before their call
    bool publish = false;        // the node does
    // By rank: those that announce all the same, because the call is mixed. Empty: it is not.
    std::vector<bool> announces = {};
    bool own_whole = false;
    SpreadCosts spread = {};
    std::vector<Plan> plans;  // by rank

    bool is_mixed() const { return !announces.empty(); }
    bool publishes_at(int rank) const
    {
        return publish && !(is_mixed() && announces[static_cast<std::size_t>(rank)]);
    }
    // Of the puts of this rank.
    bool keeps_early(Level level, int rank) const
    {
        return level == Level::rail ? eager : publishes_at(rank);
    }
    bool in_place_at(int rank) const { return in_place[static_cast<std::size_t>(rank)]; }
    bool bounce_at(int rank) const { return bounce[static_cast<std::size_t>(rank)]; }
    Extent shard(int rank) const { return shards[static_cast<std::size_t>(rank)]; }
    Plan& plan(int rank) { return plans[static_cast<std::size_t>(rank)]; }
    const Plan& plan(int rank) const { return plans[static_cast<std::size_t>(rank)]; }
};

// The plan of `rank` for this call, by the planner.
Plan plan_of(const Topology& topology, int rank, const Call& call);

// `call` with the plans of all ranks.
Call planned(const Topology& topology, Call call);

enum class Fault : std::uint8_t {
    none,
    // Seen in a plan alone.
    bad_dependency,  // on an operation that is not an earlier one
    wrong_peer,      // the rank itself, or no peer at that level
    wrong_count,     // the counts of a pair are not 1, 2, ...; on a rail in this order
    outside_shards,  // or outside the bounce buffer
    wrong_source,    // the send buffer does not hold these bytes; or, in place, there is none
    wrong_place,     // a buffer that the rank does not have, or that the operation must not use
    // Seen when the plans run.
    put_unannounced,  // the peer has not announced its buffer of this collective
    own_not_copied,   // the own shard is read where it has not been copied yet
    not_held,         // bytes are read that have not arrived
    written_twice,
    returned_early,  // a byte had not arrived
    // In its next call the rank may write to a peer without asking. That peer had not entered this
    // one.
    left_alone,
    stray,  // a put lands when its target is not in that collective
    deadlock,
    not_forwarded,  // a chunk that arrived stays until another one arrives
    // Not a fault of plans: the network breaks its promise.
    signal_without_data,
};
constexpr std::size_t faults = static_cast<std::size_t>(Fault::signal_without_data) + 1;
constexpr std::size_t faults_of_plans = static_cast<std::size_t>(Fault::not_forwarded) + 1;

const char* to_string(Fault fault);

struct Verdict {
    Fault fault = Fault::none;
    int call = -1;
    int rank = -1;
    int op = -1;

    explicit operator bool() const { return fault != Fault::none; }
    std::string text() const;
};

struct Pair {
    Level level;
    int from;
    int to;
    bool operator==(const Pair&) const = default;
};

// Chooses one of the legal orders.
struct Schedule {
    enum class Kind : std::uint8_t {
        uniform,     // any event, with equal chance
        priorities,  // ranks and pairs of random, very different speed
        slow_rank,   // `pair.from` runs an operation only when nothing else can happen
        slow_op,     // the same for its operation `number` alone
        slow_pair,   // puts of `pair` land only when nothing else can happen
        // Only the first `number` puts of `pair` land. These must be forwarded all the same.
        stalled,
        // The network breaks its promise at put `number` of `pair`:
        signal_first,  // the signal lands before the data
        data_lost,     // the signal lands, the data never
        chunk_lost,    // nothing of the put lands, but later puts do
    };
    Kind kind = Kind::uniform;
    unsigned seed = 0;
    Pair pair{};
    std::uint32_t number = 0;
};

// The first fault of the plan of `rank`, whatever the other ranks do.
Verdict inspect(const Topology& topology, int rank, const Call& call);
Verdict inspect(const Topology& topology, std::span<const Call> calls);

// Every rank makes the calls one after the other. A rank enters the next call when it has returned
// from the one before, while others may still be in that. The plans must have passed inspect().
Verdict run(const Topology& topology, std::span<const Call> calls, const Schedule& schedule);

}  // namespace hier::model
