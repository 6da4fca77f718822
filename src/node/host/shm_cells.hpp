// SPDX-License-Identifier: BSD-3-Clause
// Two copies through shared memory, pipelined. This path serves host memory if processes may not
// write to one another. It also serves device memory that cannot be mapped.
//
//   sender's cells              one queue per pair              receiver
//   +------------------+---
//   | to where | bytes | ...  -->  [cell] [cell] ...         -->  receive buffer
//   +------------------+---         (entry_ring.hpp)
//
// A fragment goes into a cell once. Every peer that wants the fragment gets an entry that names the
// cell. So each of G ranks copies its own shard in once, and G-1 shards out. A cell is free again
// when all queues have passed its last entry.
//
// Each side copies by the CPU. If a side's own memory belongs to a device, the copy engines of that
// device copy instead, and the side comes back later for the result.
//
// Bytes copied on a node of G ranks: G*S in, G*(G-1)*S out.
#pragma once

#include <array>
#include <vector>

#include "node/host/shared_copy.hpp"
#include "node/node_path.hpp"

namespace hier {

class ShmCells final : public NodePath {
public:
    static constexpr const char* name = "shared memory";

    // The segment has areas with cells.
    explicit ShmCells(const NodeContext& context);

    Status begin() override;
    Status put(const Transfer& transfer) override;
    std::uint32_t arrived(int peer) const override;
    Status progress(Completions& completions) override;
    bool idle() override;
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return has_hung_; }
    void end() override;
    // Are there fragments for this peer that it has not copied out?
    bool has_to_take(int peer) const
    {
        const Queue q = queue(context_.rank(), peer);
        return !outgoing_[static_cast<std::size_t>(peer)].empty() || q.done() < q.sent();
    }

private:
    static constexpr std::size_t bytes_per_pass = 256 << 10;  // copied by the CPU

    static constexpr std::size_t max_queue = 16;  // entries

    using Queue = EntryRing<CellEntry>;
    // A copy out of a cell.
    struct Work {
        SharedCopy copy;
        bool is_last = false;  // of its put
    };
    struct Cell {
        const std::byte* content = nullptr;  // the source of its bytes, in this call
        std::size_t length = 0;
        std::size_t target = 0;  // offset in the receive buffer
        SharedCopy filling;
        bool is_fresh = false;  // no queue has an entry for the cell yet
        // By peer: the cell is free when the peer's queue is done up to here.
        std::vector<std::uint64_t> until;
    };
    // From one peer.
    struct Incoming {
        std::uint64_t started = 0;         // entries whose copies out have been started
        std::array<Work, max_queue> work;  // by entry
        std::uint32_t arrived = 0;         // puts in this call
        Work& of(std::uint64_t entry) { return work[entry % max_queue]; }
    };
    // Puts to one peer, in order. The memory of the list is kept from call to call.
    struct Outgoing {
        std::vector<Transfer> puts;
        std::size_t next = 0;  // the put that is being sent
        std::size_t done = 0;  // bytes of this put
        bool empty() const { return next == puts.size(); }
    };

    // The bytes that go into one cell.
    struct Fragment {
        const std::byte* content;
        std::size_t length;
        std::size_t target;
    };

    Queue queue(int from, int to) const
    {
        return context_.segment->ring<CellEntry>(rings_, from, to);
    }
    std::byte* cell_at(int owner, std::size_t cell) const
    {
        return context_.segment->area(owner) + cell * NodeLayout::cell_stride(shape_.bytes);
    }
    static std::byte* content_of(std::byte* cell) { return cell + cache_line; }
    bool is_free(const Cell& cell) const;
    // Returns the cell that holds these bytes of `region`, and fills one if need be. -1: not yet.
    int cell_with(const Region& region, const Fragment& fragment, std::size_t& copied);
    bool fill(std::size_t cell, const Region& region, const Fragment& fragment,
              std::size_t& copied);
    // False: this peer can get nothing now.
    bool send_fragment(int peer, std::size_t& copied);
    void send(Completions& completions);
    Status receive(Completions& completions);
    Status start_receiving(int peer, std::size_t& copied);
    // Starts the copy of an entry's cell, or makes it. `work`: of the copy.
    Status take_out(int peer, CellEntry entry, Work& work, std::size_t& copied);
    // True: some fragment of the peer is here.
    bool end_receiving(int peer);

    // True: it is over.
    bool is_done(SharedCopy& copy);
    // failure_ keeps the first failure.
    Status keep(Status status);

    const NodeContext& context_;
    CellShape shape_;
    RingTable rings_;
    std::vector<Cell> cells_;
    std::vector<Outgoing> outgoing_;  // by peer
    std::size_t unsent_ = 0;          // puts in all of outgoing_
    std::vector<Incoming> incoming_;  // by peer
    Status failure_ = Status::ok;
    bool has_hung_ = false;
};

}  // namespace hier
