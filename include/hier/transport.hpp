// SPDX-License-Identifier: BSD-3-Clause
// A transport moves slices between buffers of the ranks of one group: a node, or a rail. It knows no
// collective and no algorithm.
//
// One object serves one level of one team. Peers are named by their index in that group. All calls
// come from one thread at a time, and none of them waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hier/memory.hpp"
#include "hier/plan.hpp"
#include "hier/status.hpp"

namespace hier {

// Memory that a collective reads or writes, valid until the collective is done.
struct Region {
    std::byte* base = nullptr;
    std::size_t length = 0;
    Allocation memory = {};  // that it lies in
};

// Do `bytes` bytes from `offset` on lie within `length`? The first two may be another process's words.
inline bool fits(std::size_t offset, std::size_t bytes, std::size_t length)
{
    return offset <= length && bytes <= length - offset;
}

inline bool contains(const Region& outer, const Region& inner)
{
    return inner.base >= outer.base && inner.base + inner.length <= outer.base + outer.length;
}

// What one call works on.
struct Binding {
    std::uint64_t sequence;  // of the call on its team, from 1, equal on all ranks; < 2^40
    Region send;             // Place::send; in place the part of `receive` that the rank sends
    Region receive;          // Place::receive
    Region bounce = {};      // Place::bounce, as long as `receive`; none where the network reaches
                             // `receive` itself
    bool eager = false;      // rail peers put without waiting until this rank is in the call
    bool publish = false;    // puts on the node go to all of its ranks and wait for none
    std::size_t chunks = 1;  // that a shard is cut into between nodes; equal on all ranks

    std::byte* at(Place place, std::size_t offset) const { return region(place).base + offset; }
    const Region& region(Place place) const
    {
        return place == Place::send ? send : place == Place::bounce ? bounce : receive;
    }
    // Where rail peers write.
    const Region& rail_target() const { return bounce.base != nullptr ? bounce : receive; }
};

struct Transfer {
    int peer;  // index in the group; Op::every_peer: in a published call
    Slice slice;
    Place from;           // which of our buffers is read
    Place to;             // copy: which of our buffers is written
    std::uint32_t count;  // signal this many arrivals at the peer, after the data
    std::uint32_t op;     // handed back on completion
};

// Where asynchronous operations report.
class Completions {
public:
    // Of transfers that the transport gathers: it has handed this one on only now.
    virtual void started(std::uint32_t) {}
    virtual void complete(std::uint32_t op, Status status) = 0;

protected:
    ~Completions() = default;
};

class Transport {
public:
    virtual ~Transport() = default;

    // Takes the buffers of the next collective: registers what needs it. peer_failed: somebody has
    // raised a failure. Every begin is followed by one end.
    virtual Status begin(const Binding& binding) = 0;
    // Lets `peer` (Op::every_peer: all of the group) write into the receive buffer, and so tells it
    // that this rank is in the call.
    virtual Status announce(int peer) = 0;
    // Tells `peer` (likewise) that this rank is in the call, in which nobody announces.
    virtual Status enter(int peer) = 0;
    // Has `peer` let us write? in_progress: not yet. mismatch: it has, for a buffer of another size.
    virtual Status announced(int peer) = 0;
    // Is `peer` known to be in the call, in which nobody announces? Its word, its puts and its
    // heartbeat count. in_progress, mismatch: as above.
    virtual Status entered(int peer) = 0;
    // Starts a transfer. ok: done at once; in_progress: `op` is completed later. Done means that
    // the source may be reused.
    virtual Status put(const Transfer& transfer) = 0;
    // As put, between our own buffers. Only on the node level.
    virtual Status copy(const Transfer& transfer) = 0;
    // Starts what put() and copy() may have gathered.
    virtual void submit(Completions&) {}
    // As put; done when all puts and announcements to `peer` land without our help: whoever then
    // makes no more calls delays nobody.
    virtual Status drain(int peer, std::uint32_t op) = 0;
    // The puts of `peer` that have arrived in this collective.
    virtual std::uint32_t arrived(int peer) = 0;
    // Is the connection to `peer` known to be broken? Nothing more comes from there, then.
    virtual bool is_lost(int) { return false; }
    // Moves things on and reports completions. Returns the first error that any rank of the group
    // has raised.
    virtual Status progress(Completions& completions) = 0;
    // Nothing of ours is reading or writing the bound buffers.
    virtual bool idle() = 0;
    // After everything has arrived: makes it visible to whatever the application does next.
    // in_progress: ask again.
    virtual Status settle() { return Status::ok; }
    virtual void end() = 0;
    // A sign of life of ranks that wait for one which has not entered the call: `heartbeat` grows
    // while there is any such rank, and every rank hands on the highest that it has heard. heard() is
    // the highest of the group's others in this call, 0 for none.
    virtual void tell(std::uint32_t heartbeat) = 0;
    virtual std::uint32_t heard() = 0;
    // Tells the group that the team has failed; they see it in begin() and progress().
    virtual void raise(Status status) = 0;
    // After raise(), once idle: tells the group, behind all data, that this rank will write into
    // none of its buffers any more.
    virtual void stop() = 0;
    // After raise(): may `peer`, of which `count` puts are due in this collective, still write into
    // the receive buffer?
    virtual bool may_write(int peer, std::uint32_t count) = 0;
};

// A signal is one 64-bit word that only grows: the collective's sequence number and the arrivals so
// far in it.
struct Signal {
    static constexpr int count_bits = 24;
    static constexpr std::uint32_t max_count = (1u << count_bits) - 1;

    static constexpr std::uint64_t encode(std::uint64_t sequence, std::uint32_t count)
    {
        return sequence << count_bits | count;
    }
    static constexpr std::uint64_t sequence(std::uint64_t word) { return word >> count_bits; }
    static constexpr std::uint32_t count(std::uint64_t word, std::uint64_t of)
    {
        return sequence(word) == of ? static_cast<std::uint32_t>(word & max_count) : 0;
    }
};

}  // namespace hier
