// SPDX-License-Identifier: BSD-3-Clause
// Runs the plans of all ranks over symbolic buffers, in random legal order, and rejects every wrong
// plan.
//
// What it assumes of the transports is the least that they promise:
//   - ready operations run in any order, except that the puts of a rail pair are issued in the
//     order of their counts
//   - a put lands piecewise, then its signal lands; on a rail pair payloads and signals each
//     keep their order; on a node pair nothing does, and the receiver sees only how many came,
//     but a put that was issued when another one was done is seen after it
//   - a put is done (its source may be reused) at any time after it was issued, before or after it
//     lands; a rank returns when all of its operations are done
//   - a put to all of a node is as many puts, which take their own time
//   - a copy goes on piecewise after it was started, and its target may be read when it is done
//   - what is read, by a put or a copy, is read at any moment from its start until it is done. It
//     must be there from the start, and then stays until the rank returns: nothing is written twice
//   - there is one bounce buffer for all calls. Peers write into it as soon as the next call
//     announces it, and what it held before is lost
//   - a rank that is outside a collective makes no progress: what it sends or receives on a rail
//     waits for its next call
//   - a drain covers the puts that were issued before it. When these have landed it needs nothing
//     more of the target: a transport whose acknowledgements need the target's progress must see
//     to that itself. What was told to the target before then lands without the rank
//   - in calls that take early puts, a rank may be one call behind those that put to it, not two
//
// A network that does not keep these promises is another kind of schedule, and rejected
// (test_network.cpp). Not modelled: failing transfers. That every rank reports them is the executor's duty, not the
// plan's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coll/allgather/plan.hpp"
#include "hier/plan.hpp"

namespace hier::model {

// One collective as all ranks call it.
struct Call {
    std::vector<Extent> shards;
    std::size_t chunk = 1;
    Route route = Route::direct;
    std::vector<bool> in_place;  // by rank
    std::vector<bool> bounce;    // by rank
    bool eager = false;          // the network keeps what comes before its call
    bool publish = false;        // and so does the node
    bool own_whole = false;
    std::vector<Plan> plans;  // by rank

    bool keeps_early(Level level) const { return level == Level::rail ? eager : publish; }
    bool in_place_at(int rank) const { return in_place[static_cast<std::size_t>(rank)]; }
    bool bounce_at(int rank) const { return bounce[static_cast<std::size_t>(rank)]; }
    Extent shard(int rank) const { return shards[static_cast<std::size_t>(rank)]; }
    Plan& plan(int rank) { return plans[static_cast<std::size_t>(rank)]; }
    const Plan& plan(int rank) const { return plans[static_cast<std::size_t>(rank)]; }
};

// What the planner says for `rank` in this call.
Plan plan_of(const Topology& topology, int rank, const Call& call);

// `call` with the plans of all ranks.
Call planned(const Topology& topology, Call call);

enum class Fault : std::uint8_t {
    none,
    // Seen in a plan alone.
    bad_dependency,  // on an operation that is not an earlier one
    wrong_peer,      // itself, or a rank that is no peer at that level
    wrong_count,     // the counts of a pair are not 1, 2, ...; on a rail in this order
    outside_shards,
    wrong_source,  // the send buffer does not hold these bytes; or, in place, there is none
    wrong_place,   // a buffer that the rank has not, or that this kind of operation must not use
    // Seen when the plans run.
    put_unannounced,  // the peer has not announced its buffer of this collective
    own_not_copied,   // the own shard is read where it has not been copied yet
    not_held,         // bytes are read that have not arrived
    written_twice,
    returned_early,  // a byte had not arrived
    // A rank that it may write to in its next call, without asking, had not entered this one.
    left_alone,
    stray,  // a put lands when its target is not in that collective
    deadlock,
    not_forwarded,  // a chunk that arrived stays until another one arrives
    // Of no plan: the network breaks its promise.
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

// Which of the legal orders is taken.
struct Schedule {
    enum class Kind : std::uint8_t {
        uniform,     // any event, with equal chance
        priorities,  // ranks and pairs of random, very different speed
        slow_rank,   // `pair.from` runs an operation only when nothing else can happen
        slow_op,     // the same for its operation `number` alone
        slow_pair,   // puts of `pair` land only when nothing else can happen
        // Only the first `number` puts of `pair` land; these must be forwarded nevertheless.
        stalled,
        // The network breaks its promise: of put `number` of `pair`
        signal_first,  // the signal lands before the data
        data_lost,     // the signal lands, the data never
        chunk_lost,    // nothing lands; what follows on the pair does
    };
    Kind kind = Kind::uniform;
    unsigned seed = 0;
    Pair pair{};
    std::uint32_t number = 0;
};

// What is wrong with the plan of `rank`, whatever the others do.
Verdict inspect(const Topology& topology, int rank, const Call& call);
Verdict inspect(const Topology& topology, std::span<const Call> calls);

// Every rank makes the calls one after the other, entering the next one when it has returned from
// the one before, while others may still be in it. The plans must have passed inspect().
Verdict run(const Topology& topology, std::span<const Call> calls, const Schedule& schedule);

}  // namespace hier::model
