// SPDX-License-Identifier: BSD-3-Clause
// A transport moves slices between the buffers of the ranks of one group: a node, or a rail. It
// knows no collective and no algorithm.
//
// One object serves one level of one team. Peers are named by their index in the group. One thread
// at a time calls the functions, and none of them waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "hier/block_homes.hpp"
#include "hier/call_shape.hpp"
#include "hier/memory.hpp"
#include "hier/plan.hpp"
#include "hier/status.hpp"

namespace hier {

// Memory that a collective reads or writes, valid until the collective is done.
struct Region {
    std::byte* base = nullptr;
    std::size_t length = 0;
    Allocation memory = {};  // the allocation that `base` lies in
    // Bytes of the same buffer before `base`, and behind the end. They are registered along with
    // the rest, so that all parts of a large call share one registration.
    std::size_t before = 0, after = 0;
    bool is_sparse = false;  // its pages come and go, so no network registers it

    Region whole() const { return {base - before, before + length + after, memory}; }
    bool operator==(const Region&) const = default;
};

// Do `bytes` bytes from `offset` on lie within `length`? The first two may come from another
// process, so their sum may overflow.
inline bool fits(std::size_t offset, std::size_t bytes, std::size_t length)
{
    return offset <= length && bytes <= length - offset;
}

inline bool contains(const Region& outer, const Region& inner)
{
    return inner.base >= outer.base && inner.base + inner.length <= outer.base + outer.length;
}

// The buffers and the mode of one call.
struct Binding {
    std::uint64_t sequence;  // number of the call in its team, from 1, equal on all ranks; < 2^40
    Region send;             // Place::send; in place: the part of `receive` that this rank sends
    Region receive;          // Place::receive
    Region bounce = {};      // Place::bounce; none if it is not needed
    bool eager = false;      // rail peers put before they know that this rank is in the call
    bool in_background = false;        // the application may compute meanwhile
    bool is_moved_by_starter = false;  // the thread that starts it may copy large blocks at once
    bool publish = false;   // a put on the node goes to all its ranks; this rank does not announce
    bool is_mixed = false;  // some ranks of the node may publish, and others not
    // No kernel pushes its blocks, because kernels start late.
    bool by_engines = false;
    std::size_t chunks = 1;  // of a shard between nodes; equal on all ranks
    std::size_t total = 0;   // bytes of the result
    std::uint16_t hash = 0;  // of the blocks, if they differ
    // By index in the rail's group: the offset in `bounce` at which the puts of this peer begin.
    std::span<const std::size_t> bounce_places = {};
    BlockHomes homes = {};  // equal on all ranks
    // By rank of the team, in `receive`. Empty: all blocks are at home.
    std::span<const std::size_t> displacements = {};
    std::span<const int> rail_ranks = {};  // of the team, by index in the rail's group
    // Bindings of a team that have the same number differ in `sequence` alone. 0: they may differ in all.
    std::uint64_t number = 0;

    // By this ranks see that they make the same call.
    std::uint64_t shape() const { return CallShape::encode(total, hash); }
    // Where a byte of the receive buffer lies that plans know by its home.
    std::size_t in_receive(std::size_t home) const
    {
        return displacements.empty() ? home : homes.displaced(home, displacements);
    }
    std::byte* at(Place place, std::size_t offset) const { return region(place).base + offset; }
    const Region& region(Place place) const
    {
        return place == Place::send ? send : place == Place::bounce ? bounce : receive;
    }
    bool has_bounce() const { return bounce.base != nullptr; }
    // Is either buffer of the application?
    bool is_on_device() const { return is_of_device(receive.memory) || is_of_device(send.memory); }
    // The buffer that rail peers write to.
    const Region& rail_target() const { return has_bounce() ? bounce : receive; }
    std::size_t place_of(std::size_t peer) const
    {
        return has_bounce() && peer < bounce_places.size() ? bounce_places[peer] : 0;
    }
};

struct Transfer {
    int peer;  // index in the group; Op::every_peer in a published call
    Slice slice;
    Place from;           // the buffer of ours that is read
    Place to;             // for a copy: the buffer of ours that is written
    std::uint32_t count;  // how many arrivals to signal to the peer, behind the data
    std::uint32_t op;     // the completion names it
    // A put on the rail to a peer that has announced a bounce buffer: the target in the peer's place
    // for this rank, instead of slice.target.
    std::size_t packed = 0;
};

struct NodeExchange {
    Transfer put;                  // to Op::every_peer
    std::optional<Transfer> copy;  // of the own block; none in place
};

// Where asynchronous operations report.
class Completions {
public:
    // For a transfer that the transport has gathered: only now has it been started.
    virtual void started(std::uint32_t) {}
    // Bytes have moved of a transfer that is not done yet. A call in which bytes move does not time
    // out.
    virtual void moved_bytes() {}
    virtual void complete(std::uint32_t op, Status status) = 0;

protected:
    ~Completions() = default;
};

class Transport {
public:
    virtual ~Transport() = default;

    // Takes the buffers of the next call, and registers them if need be. peer_failed: a rank has
    // raised a failure. One end() follows every begin(). Then a call in which nothing has been put or announced may
    // begin once more.
    virtual Status begin(const Binding& binding) = 0;
    // Lets `peer` write into the receive buffer. Op::every_peer means all peers. The peer also
    // learns that this rank is in the call.
    virtual Status announce(int peer) = 0;
    // Tells `peer` or every peer that this rank is in a call in which it does not announce.
    virtual Status enter(int peer) = 0;
    // Has `peer` let us write? Or is it known to publish? in_progress: not yet. mismatch: its buffer has another size.
    virtual Status announced(int peer) = 0;
    // Is `peer` known to be in a call in which this rank does not announce? Its entry word, its puts
    // and its heartbeat prove that. in_progress, mismatch: as above.
    virtual Status entered(int peer) = 0;
    // Starts a transfer. ok: the transfer is done. in_progress: `op` is completed later. Done means
    // that the source may be used again.
    virtual Status put(const Transfer& transfer) = 0;
    // Like put(), but between our own buffers. Only on the node level.
    virtual Status copy(const Transfer& transfer) = 0;
    // A whole call of a rank that puts one block to every peer of its node and gets one of each: begins the call, puts,
    // makes the copy if there is one, and looks about `looks` times whether a peer's block is there. If the peer copies
    // this rank's block out of its memory, waits for that, too, about as long as the copy takes. ok: the call is over,
    // and ended. in_progress: it goes on from its begin(), with the same put and copy; or the transport has no such
    // way. Only on the node level.
    virtual Status exchange(const Binding&, const NodeExchange&, unsigned /*looks*/)
    {
        return Status::in_progress;
    }
    // Starts the transfers that put() and copy() have gathered.
    virtual void submit(Completions&) {}
    // Completes like put(), when all puts and announcements to `peer` land without our help. After
    // that, a rank that makes no more calls delays nobody.
    virtual Status drain(int peer, std::uint32_t op) = 0;
    // The puts of `peer` that have arrived in this collective.
    virtual std::uint32_t arrived(int peer) = 0;
    // Is the connection to `peer` known to be broken? Then nothing more comes from this peer.
    virtual bool is_lost(int) { return false; }
    // Has the process of `peer` ended? This asks the system, so ask rarely. Only a node can tell.
    virtual bool has_ended(int) { return false; }
    // Does `peer` still have to take bytes of this rank out of shared memory, or out of this rank's memory? Until then
    // puts to other ranks may have to wait.
    virtual bool has_to_take(int) { return false; }
    // Moves transfers on and reports completions. Returns the first error that any rank of the
    // group has raised.
    virtual Status progress(Completions& completions) = 0;
    // True if none of our transfers reads or writes the buffers of the call.
    virtual bool idle() = 0;
    // Called when all data has arrived. Makes the data visible to whatever the application does
    // next. in_progress: call again.
    virtual Status settle() { return Status::ok; }
    virtual void end() = 0;
    // A sign of life. `heartbeat` grows while some rank waits for another one to enter the call, and
    // while bytes of some rank move. Every rank tells the group the highest heartbeat that it has
    // heard. heard() is the highest one of the other ranks of the group in this call, 0 for none.
    virtual void tell(std::uint32_t heartbeat) = 0;
    virtual std::uint32_t heard() = 0;
    // Have parts of puts come that are not here as a whole? Since the last question. A heartbeat of
    // their sender may wait behind them.
    virtual bool have_parts_come() { return false; }
    // Tells the group that the team has failed. The other ranks see that in begin() and progress().
    virtual void raise(Status status) = 0;
    // Called after raise(), once idle() is true. Tells the group, behind all data, that this rank
    // will not write into anybody's buffers any more.
    virtual void stop() = 0;
    // Called after raise(). May `peer` still write into the receive buffer? `count` puts of the
    // peer are due in this call.
    virtual bool may_write(int peer, std::uint32_t count) = 0;
};

// A signal is one 64-bit word that only grows. It holds the sequence number of a call and the
// number of arrivals in that call so far.
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
