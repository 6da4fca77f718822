// Host memory inside a node where processes may not write to one another: two copies through shared
// memory, pipelined.
//
//   sender's cells            one queue per pair                receiver
//   +------+------+---        [offset, length, cell] ...
//   | 64 K | 64 K | ...  -->  tail (sender)   head (receiver)  -->  receive buffer
//   +------+------+---
//
// A piece goes into a cell once, and every peer that wants it gets an entry that names the cell: of
// G ranks each copies its shard in once and G-1 shards out. A cell is free again when all queues
// have passed its last entry.
//
// Bytes copied on a node of G ranks: G*S in, G*(G-1)*S out.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "transport/node_transport.hpp"

namespace hier {

class ShmTransport final : public NodeTransport {
public:
    // Collective over the node's group.
    ShmTransport(NodeSegment segment, const Group& group);

    Status begin(const Binding& binding) override;
    Status put(const Transfer& transfer) override;
    const char* name() const override { return "shared memory"; }
    std::uint32_t arrived(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() const override;
    void end() override;

private:
    static constexpr std::size_t cells_per_rank = 8;
    static constexpr std::size_t cell_bytes = 64 << 10;
    static constexpr std::size_t queue_length = 16;
    static constexpr std::size_t bytes_per_pass = 256 << 10;

    struct Entry {
        std::uint64_t offset;  // in the receive buffer
        std::uint32_t length;
        std::uint16_t cell;
        std::uint16_t is_last;  // of its put
    };
    struct alignas(cache_line) Queue {
        std::atomic<std::uint64_t> tail;
        alignas(cache_line) std::atomic<std::uint64_t> head;
        alignas(cache_line) std::array<Entry, queue_length> entries;
    };
    struct Cell {
        const std::byte* content = nullptr;  // what it was filled from, in this collective
        std::size_t length = 0;
        std::vector<std::uint64_t> until;  // by peer: free once that queue's head is here
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
    // The cell that holds these bytes, filled now if need be; -1 when none is free.
    int cell_with(const std::byte* content, std::size_t length, std::size_t& copied);
    bool send_piece(int peer, std::size_t& copied);
    void send(Completions& completions);
    Status receive();

    SharedMemory memory_;
    std::vector<Cell> cells_;
    std::vector<Outgoing> outgoing_;      // by peer
    std::size_t unsent_ = 0;              // puts in all of outgoing_
    std::vector<std::uint32_t> arrived_;  // by peer
};

}  // namespace hier
