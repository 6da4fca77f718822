// SPDX-License-Identifier: BSD-3-Clause
// Copy engines push slices straight into the peers' device memory, and copy inside a rank's own
// memory.
//
// On a node of G ranks each rank pushes (G-1)*S bytes out of its device and gets as many. The runtime
// may use a kernel for the copy inside a device. Where that is quicker, a block goes to all peers by a
// kernel of hier's (fan_out.hpp).
//
//     gathered    a>1 a>2 a>3 | b>1 b>2 b>3 | c>1      block > peer, in the plan's order
//     started     one kernel for a and b      copies
//
// A kernel takes all blocks that wait. Two kernels are on their way at most: one runs, and one is there
// when it ends. The blocks that come meanwhile share the next one, because a start costs more than a
// block of a few 100 KiB.
//
// A receiver counts the puts of a peer and does not know which have come. So kernels and copies may
// end in any order.
//
// All copies that can run go to the device in one call and in the plan's staggered order. So no two
// ranks push into the same third one at a time. For that, copies wait for a bounded time until all
// peers are in the call.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "node/device/compute_units.hpp"
#include "node/device/engine_signals.hpp"
#include "node/device/fan_out.hpp"
#include "node/device/imports/peer_buffers.hpp"
#include "node/node_path.hpp"

namespace hier {

class CopyEngines final : public NodePath {
public:
    // `buffers`: those of the peers. nullptr: the rank is alone on its node, and only copies.
    CopyEngines(NodeContext& context, const PeerBuffers* buffers, FanOutUse fan_out);

    // Chooses the device of the call.
    Status begin() override;
    Status put(const Transfer& transfer) override;
    // Like put(), between the rank's own buffers.
    Status copy(const Transfer& transfer);
    // One more peer is in the call.
    void expect_one_less() { unknown_peers_--; }
    // Starts the gathered copies, unless they wait for peers.
    void submit(Completions& completions);
    std::uint32_t arrived(int peer) const override { return signals_.arrived(peer); }
    Status progress(Completions& completions) override;
    bool idle() override;
    // See Transport::settle().
    Status settle();
    void end() override;
    void raise() override
    {
        gathered_.items.clear();
        waiting_.clear();
    }
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return has_hung_; }
    // Has a kernel moved a block in this call?
    bool ran_kernel() const { return ran_kernel_; }

private:
    struct Item {
        std::uint32_t op;
        int peer;  // gets a signal; -1: nobody does
        gpu::Copy copy;
        bool is_in_reach = false;  // a kernel on the queue's device reaches both ends
    };
    struct Batch {
        std::uint64_t ticket;
        bool signalled_by_device;
        bool is_kernel;
        std::vector<Item> items;
        ComputeUnits::Kernel watch;  // of a kernel
    };

    bool is_here(Place place) const;
    void gather(const Item& item);
    Status start_alone(const Item& item);
    Batch spare_batch();
    // Should the gathered copies wait for peers that are about to enter the call?
    bool should_hold() const;
    void start(Completions& completions);
    bool may_fan_out(std::span<const Item> block) const;
    bool waits_anyway(std::span<const Item> items) const;
    bool should_fan_out(std::span<const Item> block) const;
    static ComputeUnits::Clock::duration patience(const Batch& batch);
    static std::span<const Item> first_block(std::span<const Item> items);
    std::span<const gpu::Copy> copies_of(std::span<const Item> items);
    void take_blocks();
    Status start_kernels(Completions& completions);
    Status start_kernel(Completions& completions);
    Status start_copies();
    static bool goes_alone(std::span<const Item> items);
    Status start_batch(std::span<const Item> items);
    void set_words(Batch& batch);
    Status keep_failure(Status status);
    Status keep_hung(Status status);
    void report(Completions& completions);

    NodeContext& context_;
    const PeerBuffers* buffers_;
    const FanOutUse fan_out_;
    bool ran_kernel_ = false;  // in this call
    EngineSignals signals_;
    Batch gathered_{};
    std::vector<Item> waiting_;  // blocks for kernels
    std::chrono::steady_clock::time_point held_since_;
    int unknown_peers_ = 0;  // peers that have not been seen in this call
    std::vector<gpu::Copy> copies_;
    std::vector<Batch> batches_;  // started
    std::vector<Batch> spare_;
    Status failure_ = Status::ok;
    bool has_hung_ = false;
    bool is_settling_ = false;
    std::uint64_t settled_ = 0;  // ticket
};

}  // namespace hier
