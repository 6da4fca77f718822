// SPDX-License-Identifier: BSD-3-Clause
// Two copies through shared memory, pipelined: for host memory where processes may not write to one
// another, and for device memory that cannot be mapped.
//
//   sender's cells            one queue per pair                receiver
//   +------+------+---        [offset, length, cell] ...
//   | 64 K | 64 K | ...  -->  (entry_ring.hpp)                 -->  receive buffer
//   +------+------+---
//
// A fragment goes into a cell once, and every peer that wants it gets an entry that names the cell: of
// G ranks each copies its shard in once and G-1 shards out. A cell is free again when all queues
// have passed its last entry. Each side copies by the CPU, or, where its own memory is a device's,
// by that device's copy engines, and then comes back for the result.
//
// Bytes copied on a node of G ranks: G*S in, G*(G-1)*S out.
#pragma once

#include <array>
#include <vector>

#include "hier/gpu.hpp"
#include "memory/registration.hpp"
#include "node/entry_ring.hpp"
#include "node/node_path.hpp"
#include "team/group.hpp"

namespace hier {

// The cells of one rank.
struct CellShape {
    std::size_t count = 8;
    std::size_t bytes = 64 << 10;
};

class ShmCells final : public NodePath {
public:
    static constexpr const char* name = "shared memory";

    ~ShmCells() override;
    // Collective over the node's group. `numa`: the node that is to hold this rank's cells; -1: any.
    ShmCells(const NodeContext& context, const Group& group, int numa, CellShape shape);

    Status begin() override;
    Status put(const Transfer& transfer) override;
    std::uint32_t arrived(int peer) const override;
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override;

private:
    static constexpr std::size_t bytes_per_pass = 256 << 10;  // by the CPU

    struct Entry {
        std::uint64_t offset;  // in the receive buffer
        std::uint32_t length;
        std::uint16_t cell;
        std::uint16_t is_last;  // of its put
    };
    using Queue = EntryRing<Entry, 16>;
    // A copy by a device's engines.
    struct Work {
        gpu::Queue* queue = nullptr;  // none: done
        std::uint64_t ticket = 0;
    };
    struct Cell {
        const std::byte* content = nullptr;  // what it was filled from, in this collective
        std::size_t length = 0;
        Work filling;
        bool is_fresh = false;             // in no queue yet
        std::vector<std::uint64_t> until;  // by peer: how far that queue is done when it is free
    };
    // From one peer.
    struct Incoming {
        std::uint64_t started = 0;  // entries of its queue that are being copied out, or have been
        std::array<Work, Queue::length> work;  // by entry
        std::uint32_t arrived = 0;             // puts, in this collective
    };
    // Puts to one peer, in order. Its memory is kept from call to call.
    struct Outgoing {
        std::vector<Transfer> puts;
        std::size_t next = 0;  // the put that is being sent
        std::size_t done = 0;  // bytes of it
        bool empty() const { return next == puts.size(); }
    };

    Queue& queue(int from, int to) const;
    std::byte* cell_data(int owner, std::size_t cell) const;
    bool is_free(const Cell& cell) const;
    // The cell that holds these bytes, filled if need be; -1: not yet.
    int cell_with(const Region& region, const std::byte* content, std::size_t length,
                  std::size_t& copied);
    // False: nothing to be done for this peer now.
    bool send_fragment(int peer, std::size_t& copied);
    void send(Completions& completions);
    Status receive();
    Status start_receiving(int peer, std::size_t& copied);
    void end_receiving(int peer);

    // The queue of the device that `region` belongs to; nullptr for memory that the CPU reaches.
    // Failures are kept in failure_.
    gpu::Queue* engines_of(const Region& region);
    bool is_done(Work& work);

    const NodeContext& context_;
    CellShape shape_;
    SharedMemory memory_;
    std::vector<Cell> cells_;
    std::vector<Outgoing> outgoing_;  // by peer
    std::size_t unsent_ = 0;          // puts in all of outgoing_
    std::vector<Incoming> incoming_;  // by peer
    Registration registration_;       // of memory_
    Status failure_ = Status::ok;
};

}  // namespace hier
