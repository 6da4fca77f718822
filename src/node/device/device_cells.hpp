// SPDX-License-Identifier: BSD-3-Clause
// Into device memory that cannot be exported (of a pool, or mapped by the application): the receiver
// lends each peer some cells of device memory that can, and copies on from there.
//
//   sender's engine        receiver's cells for it       receiver's engine
//   put, in fragments    -->  [ 0 | 1 | ... | 7 ]  -->  receive buffer
//                        (entry_ring.hpp)
//
// Fragments take the cells in turn. Each side starts copies, and says when it comes back that they are
// done: as many at once as there are, because between two starts an engine rests for some us
// (CUDA), but half of the cells at most, so that the others are at work meanwhile. The copy inside
// the device is the driver's, as that of the own block.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "hier/gpu.hpp"
#include "node/device/lent_memory.hpp"
#include "node/entry_ring.hpp"
#include "node/node_path.hpp"

namespace hier {

class DeviceCells final : public NodePath {
public:
    static constexpr std::size_t max_bytes = 64 << 20;  // that a rank lends to all its peers

    // Bytes of the segment (NodeSegment::more()) that a node of so many ranks needs.
    static std::size_t shared_bytes(int ranks);

    explicit DeviceCells(const NodeContext& context);
    ~DeviceCells() override;
    DeviceCells(const DeviceCells&) = delete;
    DeviceCells& operator=(const DeviceCells&) = delete;

    Status begin() override;
    // The cells that this rank lends, on its device. nullptr: there are none; the cause was logged.
    const ExportedMemory* lend(int device);
    // Puts to `peer` go by what it lends, which is mapped here at `cells`.
    void use(int peer, std::byte* cells);
    Status put(const Transfer& transfer) override;
    std::uint32_t arrived(int peer) const override;
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override;
    void raise() override { end(); }
    // A copy may go on, however long.
    bool has_hung() const { return has_hung_; }

private:
    static constexpr std::size_t cells_per_peer = 8;
    static constexpr std::size_t max_at_once = cells_per_peer / 2;

    struct Entry {
        std::uint64_t offset;  // in the receive buffer
        std::uint32_t length;
        std::uint32_t is_last;  // of its put
    };
    // From one peer to another. Fragment i is in cell i % cells_per_peer.
    using Pair = EntryRing<Entry, cells_per_peer>;
    // A part of a put, in one cell.
    struct Fragment {
        std::uint64_t ticket = 0;
        Entry entry{};
        std::uint32_t op = 0;
    };
    struct Outgoing {
        std::byte* cells = nullptr;
        struct Put {
            Transfer transfer;
            const std::byte* source;
        };
        std::vector<Put> puts;
        std::size_t next = 0;  // the put that is being pushed
        std::size_t done = 0;  // bytes of it
        std::uint64_t pushed =
            0;  // fragments, from the first collective on; told: the pair's sent()
        std::array<Fragment, cells_per_peer> fragments;
    };
    struct Incoming {
        std::uint64_t started = 0;  // copies out of cells; done: the pair's freed()
        std::array<std::uint64_t, cells_per_peer> tickets{};
        std::uint32_t arrived = 0;  // puts, in this collective
    };

    Pair& pair(int from, int to) const;
    std::size_t cell_bytes() const;
    // The cells for `from` begin there in the memory that `to` lends.
    std::size_t offset(int from, int to) const;
    void add(const gpu::Copy& copy);
    std::size_t fragments_left(const Outgoing& out) const;
    Status push(int peer);
    Status tell(int peer, Completions& completions);
    Status take(int peer);
    Status free(int peer);
    Status start(std::uint64_t& ticket);  // what is in copies_
    Status reached(std::uint64_t ticket);
    void give_back();

    const NodeContext& context_;
    std::vector<Outgoing> outgoing_;  // by peer
    std::vector<Incoming> incoming_;
    std::vector<gpu::Copy> copies_;  // about to be started
    int device_ = -1;                // on which lent_ is, or could not be had
    const LentMemory::Block* lent_ = nullptr;
    bool is_used_ = false;  // in this collective
    bool has_hung_ = false;
    Status failure_ = Status::ok;
};

}  // namespace hier
